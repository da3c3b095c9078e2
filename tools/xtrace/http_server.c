/* SPDX-License-Identifier: Apache-2.0 */
#include "http_server.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#define HEADER_BYTES_MAX 16384
#define ACCEPT_PAUSE_US	 100000

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
	evhttp_set_gencb(server->http, answer, context);
	return 0;
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
	if (server->base)
		event_base_free(server->base);
	*server = (struct http_server){0};
}
