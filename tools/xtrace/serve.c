/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves one page over HTTP with libevent.
 */
#include "serve.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "http_server.h"

#define KEY_BYTES 16
#define TIMEOUT_S 60

struct server {
	const char *page;
	char path[2 * KEY_BYTES + 3]; /* "/KEY/" */
};

/* Opens the page at each request: after a new recording, a reload shows the new one. */
static struct evbuffer *read_page(const char *page)
{
	struct evbuffer *content = evbuffer_new();
	int file = open(page, O_RDONLY | O_CLOEXEC);
	struct stat status;

	if (content && file >= 0 && !fstat(file, &status) &&
	    !evbuffer_add_file(content, file, 0, status.st_size))
		return content; /* it closes the file */
	if (file >= 0)
		close(file);
	if (content)
		evbuffer_free(content);
	return NULL;
}

static void answer(struct evhttp_request *request, void *context)
{
	const struct server *server = context;
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	struct evbuffer *content;

	if (!path || strcmp(path, server->path) != 0) {
		evhttp_send_error(request, HTTP_NOTFOUND, NULL);
		return;
	}
	content = read_page(server->page);
	if (!content) {
		evhttp_send_error(request, HTTP_INTERNAL, NULL);
		return;
	}
	http_add_header(request, "Content-Type", "text/html; charset=utf-8");
	http_add_header(request, "Cache-Control", "no-store");
	http_add_header(request, "Referrer-Policy", "no-referrer");
	http_add_header(request, "X-Content-Type-Options", "nosniff");
	evhttp_send_reply(request, HTTP_OK, NULL, content);
	evbuffer_free(content);
}

/* The user reached this host by the address and port in SSH_CONNECTION. */
static void print_ssh_command(unsigned port)
{
	const char *connection = getenv("SSH_CONNECTION");
	const struct passwd *user = getpwuid(geteuid());
	char host[256] = "HOST", from_port[32] = "";
	unsigned ssh_port = 22;

	if (!connection || sscanf(connection, "%*s %*s %255s %u", host, &ssh_port) != 2)
		gethostname(host, sizeof(host) - 1);
	if (ssh_port != 22)
		snprintf(from_port, sizeof(from_port), "-p %u ", ssh_port);
	printf("From another machine, run this there first:\n"
	       "  ssh -N %s-L %u:" LOOPBACK ":%u %s@%s\n",
	       from_port, port, port, user ? user->pw_name : "USER", host);
}

static int listen_and_serve(struct http_server *http, const struct server *server, unsigned wanted)
{
	unsigned port = http_server_bind(http, LOOPBACK, wanted ? wanted : SERVE_PORT_DEFAULT);
	char address[128];

	if (!port && !wanted && errno == EADDRINUSE)
		port = http_server_bind(http, LOOPBACK, 0);
	if (!port) {
		print_error("cannot serve on port %u: %s; choose another with --serve PORT",
			    wanted ? wanted : SERVE_PORT_DEFAULT, strerror(errno));
		return -1;
	}
	snprintf(address, sizeof(address), "http://" LOOPBACK ":%u%s", port, server->path);
	printf("%s\n", address);
	print_ssh_command(port);
	printf("Press Ctrl+C to stop.\n");
	fflush(stdout);
	http_server_run(http);
	return 0;
}

int serve_page(const char *page, unsigned port)
{
	struct server server = {.page = page};
	struct http_server http = {0};
	unsigned char key[KEY_BYTES];
	char *end = server.path;
	int error = -1;

	if (http_server_open(&http, EVHTTP_REQ_GET, TIMEOUT_S, answer, &server) ||
	    getrandom(key, sizeof(key), 0) != sizeof(key)) {
		print_error("cannot serve the page: out of memory");
		goto out;
	}
	*end++ = '/';
	for (size_t i = 0; i < KEY_BYTES; i++)
		end += sprintf(end, "%02x", key[i]);
	*end = '/';
	error = listen_and_serve(&http, &server, port);
out:
	http_server_close(&http);
	return error;
}
