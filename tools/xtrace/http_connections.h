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

#define HTTP_CONNECTIONS_MAX 256 /* a further one ends an idle or the oldest one */
#define HTTP_REQUEST_S	     5	 /* for a request to be complete, from its first byte */

struct http_connection;

struct http_connections {
	TAILQ_HEAD(http_connection_list, http_connection)
	list; /* the last to change its state is last */
	size_t count;
	int idle_s; /* after an answer, until the next request */
	struct event *timer;
};

/*
 * Watches the connections that the server accepts from now on. Returns 0 or -1; call
 * http_connections_free() after the server is gone, in any case.
 */
int http_connections_watch(struct http_connections *connections, struct event_base *base,
			   struct evhttp *http, int idle_s);

/* A request is complete, so its connection has time for the answer, and is idle afterwards. */
void http_connections_answer(struct http_connections *connections, struct evhttp_request *request);

void http_connections_free(struct http_connections *connections);

#endif
