/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that all HTTP servers of xtrace share. libevent calls the handlers on the main thread.
 */
#ifndef XTRACE_HTTP_SERVER_H
#define XTRACE_HTTP_SERVER_H

#include <event2/http.h>

#define LOOPBACK "127.0.0.1"

struct http_server {
	struct event_base *base;
	struct evhttp *http;
};

typedef void http_answer(struct evhttp_request *request, void *context);

/*
 * Accepts requests of `methods`, without a body. A connection that is idle for timeout_s is closed.
 * Ignores SIGPIPE from then on. Returns 0 or -1; call http_server_close() in any case.
 */
int http_server_open(struct http_server *server, unsigned methods, int timeout_s,
		     http_answer *answer, void *context);

/* port 0: any. Returns the port, or 0 if it cannot be had: then errno is set. */
unsigned http_server_bind(struct http_server *server, const char *address, unsigned port);

/* Answers requests until SIGINT, SIGTERM or SIGHUP. */
void http_server_run(struct http_server *server);

void http_server_close(struct http_server *server);

void http_add_header(struct evhttp_request *request, const char *name, const char *value);

#endif
