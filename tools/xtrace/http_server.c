/* SPDX-License-Identifier: Apache-2.0 */
#include "http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

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
