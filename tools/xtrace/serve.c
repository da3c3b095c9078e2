/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves one page over HTTP with libevent.
 */
#include "serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"

#define LOOPBACK	 "127.0.0.1"
#define KEY_BYTES	 16
#define HEADER_BYTES_MAX 16384
#define TIMEOUT_S	 60

struct server {
	const char *page;
	char path[2 * KEY_BYTES + 3]; /* "/KEY/" */
};

static void add_header(struct evhttp_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

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
	add_header(request, "Content-Type", "text/html; charset=utf-8");
	add_header(request, "Cache-Control", "no-store");
	add_header(request, "Referrer-Policy", "no-referrer");
	add_header(request, "X-Content-Type-Options", "nosniff");
	evhttp_send_reply(request, HTTP_OK, NULL, content);
	evbuffer_free(content);
}

static void stop(evutil_socket_t number, short what, void *context)
{
	(void)number;
	(void)what;
	event_base_loopbreak(context);
}

/* Returns the port, or 0 if it cannot be had: then errno is set. */
static unsigned bind_port(struct evhttp *http, unsigned port)
{
	struct evhttp_bound_socket *bound =
		evhttp_bind_socket_with_handle(http, LOOPBACK, (uint16_t)port);
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	if (!bound ||
	    getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &length))
		return 0;
	return ntohs(address.sin_port);
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

static int listen_and_serve(struct server *server, struct event_base *base, struct evhttp *http,
			    unsigned wanted)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
	struct event *signals[3] = {NULL};
	unsigned port = bind_port(http, wanted ? wanted : SERVE_PORT_DEFAULT);
	char address[128];

	if (!port && !wanted && errno == EADDRINUSE)
		port = bind_port(http, 0);
	if (!port) {
		print_error("cannot serve on port %u: %s; choose another with --serve PORT",
			    wanted ? wanted : SERVE_PORT_DEFAULT, strerror(errno));
		return -1;
	}
	for (size_t i = 0; i < 3; i++) {
		signals[i] = evsignal_new(base, ending[i], stop, base);
		if (signals[i])
			event_add(signals[i], NULL);
	}
	snprintf(address, sizeof(address), "http://" LOOPBACK ":%u%s", port, server->path);
	printf("%s\n", address);
	print_ssh_command(port);
	printf("Press Ctrl+C to stop.\n");
	fflush(stdout);
	event_base_dispatch(base);
	for (size_t i = 0; i < 3; i++)
		if (signals[i])
			event_free(signals[i]);
	return 0;
}

int serve_page(const char *page, unsigned port)
{
	struct server server = {.page = page};
	struct event_base *base = event_base_new();
	struct evhttp *http = base ? evhttp_new(base) : NULL;
	unsigned char key[KEY_BYTES];
	char *end = server.path;
	int error = -1;

	if (!http || getrandom(key, sizeof(key), 0) != sizeof(key)) {
		print_error("cannot serve the page: out of memory");
		goto out;
	}
	*end++ = '/';
	for (size_t i = 0; i < KEY_BYTES; i++)
		end += sprintf(end, "%02x", key[i]);
	*end = '/';
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away ends its own connection only */
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET);
	evhttp_set_max_headers_size(http, HEADER_BYTES_MAX);
	evhttp_set_max_body_size(http, 0);
	evhttp_set_timeout(http, TIMEOUT_S);
	evhttp_set_gencb(http, answer, &server);
	error = listen_and_serve(&server, base, http, port);
out:
	if (http)
		evhttp_free(http);
	if (base)
		event_base_free(base);
	return error;
}
