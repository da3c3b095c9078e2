/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds the connections of an HTTP server. libevent closes idle ones only: a client that sends a
 * byte now and then would keep its connection for ever. Main thread.
 */
#ifndef XTRACE_HTTP_CONNECTIONS_H
#define XTRACE_HTTP_CONNECTIONS_H

#include <event2/http.h>
#include <stddef.h>
#include <sys/queue.h>

#define HTTP_CONNECTIONS_MAX 256 /* a further one ends the oldest */
#define HTTP_REQUEST_S	     5	 /* for a request to be complete */

struct http_connection;

struct http_connections {
	TAILQ_HEAD(http_connection_list, http_connection)
	list; /* by the time until which it may last */
	size_t count;
	int answer_s; /* for an answer to be read */
	struct event *timer;
};

/*
 * Watches the connections that the server accepts from now on. Returns 0 or -1; call
 * http_connections_free() after the server is gone, in any case.
 */
int http_connections_watch(struct http_connections *connections, struct event_base *base,
			   struct evhttp *http, int answer_s);

/* A request is complete, so its connection has time for the answer. */
void http_connections_answer(struct http_connections *connections, struct evhttp_request *request);

void http_connections_free(struct http_connections *connections);

#endif
