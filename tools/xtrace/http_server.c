/* SPDX-License-Identifier: Apache-2.0 */
/*
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
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#define SWEEP_US     500000
#define ANSWER_TIMES 10 /* as long as an idle connection lasts, for an answer to be read */

struct http_connection {
	TAILQ_ENTRY(http_connection) place;
	struct bufferevent *socket; /* with a reference, because libevent frees it at any time */
	struct http_connections *all;
	time_t until_s;
	bool is_idle; /* it had an answer, and nothing of the next request */
};

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void change_state(struct http_connection *connection, bool is_idle, int seconds)
{
	connection->is_idle = is_idle;
	connection->until_s = now_s() + seconds;
	TAILQ_REMOVE(&connection->all->list, connection, place);
	TAILQ_INSERT_TAIL(&connection->all->list, connection, place);
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

static void forget(struct http_connections *connections, struct http_connection *connection)
{
	TAILQ_REMOVE(&connections->list, connection, place);
	connections->count--;
	evbuffer_remove_cb(bufferevent_get_input(connection->socket), note_input, connection);
	bufferevent_decref(connection->socket);
	free(connection);
}

/* libevent sees the end of the connection, and frees it. */
static void end(struct http_connections *connections, struct http_connection *connection)
{
	if (is_open(connection))
		shutdown(bufferevent_getfd(connection->socket), SHUT_RDWR);
	forget(connections, connection);
}

static void end_one(struct http_connections *connections)
{
	struct http_connection *connection;

	TAILQ_FOREACH(connection, &connections->list, place)
	{
		if (connection->is_idle)
			break;
	}
	end(connections, connection ? connection : TAILQ_FIRST(&connections->list));
}

static void start_timer(struct http_connections *connections)
{
	const struct timeval next = {0, SWEEP_US};

	event_add(connections->timer, &next);
}

static void sweep(evutil_socket_t unused, short what, void *context)
{
	struct http_connections *connections = context;
	struct http_connection *connection = TAILQ_FIRST(&connections->list), *next;
	time_t time_s = now_s();

	(void)unused;
	(void)what;
	for (; connection; connection = next) {
		next = TAILQ_NEXT(connection, place);
		if (!is_open(connection))
			forget(connections, connection);
		else if (connection->until_s < time_s)
			end(connections, connection);
	}
	if (connections->count)
		start_timer(connections);
}

/* libevent calls this for each connection that it accepts. */
static struct bufferevent *begin(struct event_base *base, void *context)
{
	struct http_connections *connections = context;
	struct http_connection *connection = calloc(1, sizeof(*connection));

	if (connection)
		connection->socket = bufferevent_socket_new(base, -1, 0);
	if (!connection || !connection->socket) {
		free(connection);
		return NULL;
	}
	if (connections->count == HTTP_CONNECTIONS_MAX)
		end_one(connections);
	if (!connections->count)
		start_timer(connections);
	bufferevent_incref(connection->socket);
	evbuffer_add_cb(bufferevent_get_input(connection->socket), note_input, connection);
	connection->all = connections;
	connection->until_s = now_s() + HTTP_REQUEST_S;
	TAILQ_INSERT_TAIL(&connections->list, connection, place);
	connections->count++;
	return connection->socket;
}

/*
 * Watches the connections that the server accepts from now on. Returns 0 or -1; call
 * http_connections_free() after the server is gone, in any case.
 */
static int http_connections_watch(struct http_connections *connections, struct event_base *base,
				  struct evhttp *http, int idle_s)
{
	*connections = (struct http_connections){.idle_s = idle_s};
	TAILQ_INIT(&connections->list);
	connections->timer = event_new(base, -1, 0, sweep, connections);
	if (!connections->timer)
		return -1;
	evhttp_set_bevcb(http, begin, connections);
	return 0;
}

static struct http_connection *find(struct http_connections *connections,
				    struct evhttp_request *request)
{
	struct bufferevent *socket =
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
	struct http_connection *connection;

	TAILQ_FOREACH(connection, &connections->list, place)
	{
		if (connection->socket == socket)
			break;
	}
	return connection;
}

/* The next request may have begun while its client received the answer. */
static void note_sent(struct evhttp_request *request, void *context)
{
	struct http_connections *connections = context;
	struct http_connection *connection = find(connections, request);
	bool is_idle;

	if (!connection)
		return;
	is_idle = !evbuffer_get_length(bufferevent_get_input(connection->socket));
	change_state(connection, is_idle, is_idle ? connections->idle_s : HTTP_REQUEST_S);
}

/* A request is complete, so its connection has time for the answer, and is idle afterwards. */
static void http_connections_answer(struct http_connections *connections,
				    struct evhttp_request *request)
{
	struct http_connection *connection = find(connections, request);

	if (connection)
		change_state(connection, false, ANSWER_TIMES * connections->idle_s);
	evhttp_request_set_on_complete_cb(request, note_sent, connections);
}

static void http_connections_free(struct http_connections *connections)
{
	if (!connections->timer)
		return;
	while (!TAILQ_EMPTY(&connections->list))
		forget(connections, TAILQ_FIRST(&connections->list));
	event_free(connections->timer);
	connections->timer = NULL;
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

	http_connections_answer(&server->connections, request);
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
	return http_connections_watch(&server->connections, server->base, server->http, timeout_s);
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
	http_connections_free(&server->connections);
	if (server->base)
		event_base_free(server->base);
	*server = (struct http_server){0};
}
