/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP servers, and that of one page for xtrace report.
 *
 * Bounds the connections: libevent closes idle ones only, so a client that sends a byte now and
 * then would keep its connection for ever.
 */
#include "http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "log/base/monotonic.h"

#define SWEEP_US     500000
#define ANSWER_TIMES 10 /* as long as an idle connection lasts, for an answer to be read */

static void change_state(struct http_connection *connection, bool is_idle, int seconds)
{
	connection->is_idle = is_idle;
	connection->changed_ns = monotonic_ns();
	connection->until_ns = connection->changed_ns + (uint64_t)seconds * 1000000000;
}

/* libevent adds bytes that it received. */
static void note_input(struct evbuffer *input, const struct evbuffer_cb_info *change, void *context)
{
	struct http_connection *connection = context;

	(void)input;
	if (connection->is_idle && change->n_added)
		change_state(connection, false, HTTP_REQUEST_S);
}

/* libevent clears the context of its callbacks when it frees a connection. */
static bool is_open(const struct http_connection *connection)
{
	void *context;

	bufferevent_getcb(connection->socket, NULL, NULL, NULL, &context);
	return context != NULL;
}

static void forget(struct http_connection *connection)
{
	evbuffer_remove_cb(bufferevent_get_input(connection->socket), note_input, connection);
	bufferevent_decref(connection->socket);
	connection->socket = NULL;
}

/* libevent sees the end of the connection, and frees it. */
static void http_end(struct http_connection *connection)
{
	if (is_open(connection))
		shutdown(bufferevent_getfd(connection->socket), SHUT_RDWR);
	forget(connection);
}

/* A free place. If there is none, ends the connection that is idle for longest, or the oldest. */
static struct http_connection *make_room(struct http_server *server)
{
	struct http_connection *best = server->connections;

	for (size_t c = 0; c < HTTP_CONNECTIONS_MAX; c++) {
		struct http_connection *other = &server->connections[c];

		if (!other->socket)
			return other;
		if (other->is_idle == best->is_idle ? other->changed_ns < best->changed_ns
						    : other->is_idle)
			best = other;
	}
	http_end(best);
	return best;
}

static void start_timer(struct http_server *server)
{
	const struct timeval next = {0, SWEEP_US};

	if (!event_pending(server->timer, EV_TIMEOUT, NULL))
		event_add(server->timer, &next);
}

static void sweep(evutil_socket_t unused, short what, void *context)
{
	struct http_server *server = context;
	uint64_t now_ns = monotonic_ns();

	(void)unused;
	(void)what;
	for (size_t c = 0; c < HTTP_CONNECTIONS_MAX; c++) {
		struct http_connection *connection = &server->connections[c];

		if (connection->socket && !is_open(connection))
			forget(connection);
		else if (connection->socket && connection->until_ns < now_ns)
			http_end(connection);
		if (connection->socket)
			start_timer(server);
	}
}

/* libevent calls this for each connection that it accepts. */
static struct bufferevent *http_begin(struct event_base *base, void *context)
{
	struct bufferevent *socket = bufferevent_socket_new(base, -1, 0);
	struct http_connection *connection;

	if (!socket)
		return NULL;
	connection = make_room(context);
	connection->socket = socket;
	change_state(connection, false, HTTP_REQUEST_S);
	bufferevent_incref(socket);
	evbuffer_add_cb(bufferevent_get_input(socket), note_input, connection);
	start_timer(context);
	return socket;
}

static struct http_connection *find(struct http_server *server, struct evhttp_request *request)
{
	struct bufferevent *socket =
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));

	for (size_t c = 0; c < HTTP_CONNECTIONS_MAX; c++)
		if (server->connections[c].socket == socket)
			return &server->connections[c];
	return NULL;
}

/* The next request may have begun while its client received the answer. */
static void note_sent(struct evhttp_request *request, void *context)
{
	struct http_server *server = context;
	struct http_connection *connection = find(server, request);
	bool is_idle;

	if (!connection)
		return;
	is_idle = !evbuffer_get_length(bufferevent_get_input(connection->socket));
	change_state(connection, is_idle, is_idle ? server->idle_s : HTTP_REQUEST_S);
}

#define HEADER_BYTES_MAX   16384
#define ACCEPT_PAUSE_US	   100000
#define STATUS_MISDIRECTED 421

void http_add_header(struct evhttp_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

/* Errors are reported by the caller, in our words. */
static void ignore_log(int severity, const char *message)
{
	(void)severity;
	(void)message;
}

/* Whether a host, without its port, is this machine as its own programs call it. */
static bool is_loopback(const char *host)
{
	struct in_addr address;

	return !strcasecmp(host, "localhost") || !strcmp(host, "::1") ||
	       (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

/* Copies the host of a header such as "localhost:9780" or "[::1]:9780". */
static void copy_host(char *out, size_t out_bytes, const char *header)
{
	bool has_brackets = *header == '[';
	size_t length = strcspn(header + has_brackets, has_brackets ? "]" : ":");

	snprintf(out, out_bytes, "%.*s", (int)length, header + has_brackets);
}

static bool is_addressed(const struct http_server *server, struct evhttp_request *request)
{
	const char *header = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
	char host[256];

	/* Browsers always send it. */
	if (!header || server->is_on_all_addresses)
		return true;
	copy_host(host, sizeof(host), header);
	return is_loopback(host) || !strcasecmp(host, server->address);
}

static void answer_if_addressed(struct evhttp_request *request, void *context)
{
	struct http_server *server = context;
	struct http_connection *connection = find(server, request);

	/* The request is complete: there is time for the answer, and idle time afterwards. */
	if (connection)
		change_state(connection, false, ANSWER_TIMES * server->idle_s);
	evhttp_request_set_on_complete_cb(request, note_sent, server);
	if (is_addressed(server, request))
		server->answer(request, server->context);
	else
		evhttp_send_error(request, STATUS_MISDIRECTED, "Misdirected Request");
}

int http_server_open(struct http_server *server, unsigned methods, int timeout_s,
		     http_answer *answer, void *context)
{
	event_set_log_callback(ignore_log);
	server->base = event_base_new();
	server->http = server->base ? evhttp_new(server->base) : NULL;
	if (!server->http)
		return -1;
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away ends its own connection only */
	evhttp_set_allowed_methods(server->http, (ev_uint16_t)methods);
	evhttp_set_max_headers_size(server->http, HEADER_BYTES_MAX);
	evhttp_set_max_body_size(server->http, 0);
	evhttp_set_timeout(server->http, timeout_s);
	server->answer = answer;
	server->context = context;
	evhttp_set_gencb(server->http, answer_if_addressed, server);
	server->idle_s = timeout_s;
	server->timer = event_new(server->base, -1, 0, sweep, server);
	evhttp_set_bevcb(server->http, http_begin, server);
	return server->timer ? 0 : -1;
}

static void resume_accepting(evutil_socket_t number, short what, void *context)
{
	(void)number;
	(void)what;
	evconnlistener_enable(context);
}

/* Without files for more connections, trying at once would take all of a processor. */
static void pause_accepting(struct evconnlistener *listener, void *context)
{
	const struct timeval pause = {0, ACCEPT_PAUSE_US};

	(void)context;
	if (!event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, resume_accepting,
			     listener, &pause))
		evconnlistener_disable(listener);
}

unsigned http_server_bind(struct http_server *server, const char *address, unsigned port)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);

	errno = 0;
	bound = evhttp_bind_socket_with_handle(server->http, address, (ev_uint16_t)port);
	if (!bound && !errno)
		errno = EADDRNOTAVAIL; /* the name is unknown */
	if (!bound ||
	    getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&name, &length))
		return 0;
	server->address = address;
	server->is_on_all_addresses =
		name.ss_family == AF_INET6
			? IN6_IS_ADDR_UNSPECIFIED(
				  &((struct sockaddr_in6 *)(void *)&name)->sin6_addr)
			: !((struct sockaddr_in *)(void *)&name)->sin_addr.s_addr;
	evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), pause_accepting);
	/* IPv6 has the port at the same place. */
	return ntohs(((struct sockaddr_in *)(void *)&name)->sin_port);
}

static void stop(evutil_socket_t number, short what, void *context)
{
	(void)number;
	(void)what;
	event_base_loopbreak(context);
}

void http_server_run(struct http_server *server)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
	struct event *signals[3] = {NULL};

	for (size_t i = 0; i < 3; i++) {
		signals[i] = evsignal_new(server->base, ending[i], stop, server->base);
		if (signals[i])
			event_add(signals[i], NULL);
	}
	event_base_dispatch(server->base);
	for (size_t i = 0; i < 3; i++)
		if (signals[i])
			event_free(signals[i]);
}

void http_server_close(struct http_server *server)
{
	if (server->http)
		evhttp_free(server->http);
	for (size_t c = 0; c < HTTP_CONNECTIONS_MAX; c++)
		if (server->connections[c].socket)
			forget(&server->connections[c]);
	if (server->timer)
		event_free(server->timer);
	if (server->base)
		event_base_free(server->base);
	*server = (struct http_server){0};
}

#define KEY_BYTES      16
#define PAGE_TIMEOUT_S 60
#define PAGE_PORT      6780 /* unless the user chooses one */

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

static void answer_page(struct evhttp_request *request, void *context)
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

static int bind_and_serve(struct http_server *http, const struct server *server, unsigned wanted)
{
	unsigned port = http_server_bind(http, LOOPBACK, wanted ? wanted : PAGE_PORT);
	char address[128];

	if (!port && !wanted && errno == EADDRINUSE)
		port = http_server_bind(http, LOOPBACK, 0);
	if (!port) {
		print_error("cannot serve on port %u: %s; choose another with --serve PORT",
			    wanted ? wanted : PAGE_PORT, strerror(errno));
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

	if (http_server_open(&http, EVHTTP_REQ_GET, PAGE_TIMEOUT_S, answer_page, &server) ||
	    getrandom(key, sizeof(key), 0) != sizeof(key)) {
		print_error("cannot serve the page: out of memory");
		goto out;
	}
	*end++ = '/';
	for (size_t i = 0; i < KEY_BYTES; i++)
		end += sprintf(end, "%02x", key[i]);
	*end = '/';
	error = bind_and_serve(&http, &server, port);
out:
	http_server_close(&http);
	return error;
}
