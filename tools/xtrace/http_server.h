/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that all HTTP servers of xtrace share. libevent calls the handlers on the main thread.
 */
#ifndef XTRACE_HTTP_SERVER_H
#define XTRACE_HTTP_SERVER_H

#include <event2/http.h>
#include <stdbool.h>
#include <stdint.h>

#define HTTP_CONNECTIONS_MAX 256 /* a further one ends an idle or the oldest one */
#define HTTP_REQUEST_S	     5	 /* for a request to be complete, from its first byte */

#define LOOPBACK "127.0.0.1"

typedef void http_answer(struct evhttp_request *request, void *context);

struct http_server {
	struct event_base *base;
	struct evhttp *http;
	struct http_connection {
		/* With a reference, because libevent frees it at any time. NULL: a free place. */
		struct bufferevent *socket;
		uint64_t changed_ns, until_ns; /* of its state */
		bool is_idle; /* it had an answer, and nothing of the next request */
	} connections[HTTP_CONNECTIONS_MAX];
	struct event *timer;
	int idle_s; /* after an answer, until the next request */
	http_answer *answer;
	void *context;
	const char *address; /* that it was bound to */
	bool is_on_all_addresses;
};

/*
 * Accepts requests of `methods`, without a body. A connection that is idle for timeout_s is closed,
 * and one that lasts ten times as long. Ignores SIGPIPE from then on. Returns 0 or -1; call
 * http_server_close() in any case.
 *
 * A page elsewhere may have its own name point to this server, to read it in the user's browser. So
 * requests must be addressed to a name of the loopback interface or to the address that was bound,
 * unless the server is bound to all addresses.
 */
int http_server_open(struct http_server *server, unsigned methods, int timeout_s,
		     http_answer *answer, void *context);

/* port 0: any. address must stay. Returns the port, or 0 if it cannot be had: then errno is set. */
unsigned http_server_bind(struct http_server *server, const char *address, unsigned port);

/* Answers requests until SIGINT, SIGTERM or SIGHUP. */
void http_server_run(struct http_server *server);

void http_server_close(struct http_server *server);

void http_add_header(struct evhttp_request *request, const char *name, const char *value);

/*
 * Serves the page on the loopback interface until SIGINT, SIGTERM or SIGHUP. Prints its address,
 * and the ssh command that forwards the port. The address holds a random key, because other users
 * of the host reach the port, too. port 0: 6780, or any other if that is taken. Ignores SIGPIPE
 * from then on. Returns 0 or -1 after an error was printed.
 */
int serve_page(const char *page, unsigned port);

#endif
