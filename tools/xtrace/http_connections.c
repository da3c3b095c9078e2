/* SPDX-License-Identifier: Apache-2.0 */
#include "http_connections.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#define SWEEP_US 500000

struct http_connection {
	TAILQ_ENTRY(http_connection) place;
	struct bufferevent *socket; /* with a reference, because libevent frees it at any time */
	time_t until_s;
};

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
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
		end(connections, TAILQ_FIRST(&connections->list));
	if (!connections->count)
		start_timer(connections);
	bufferevent_incref(connection->socket);
	connection->until_s = now_s() + HTTP_REQUEST_S;
	TAILQ_INSERT_TAIL(&connections->list, connection, place);
	connections->count++;
	return connection->socket;
}

int http_connections_watch(struct http_connections *connections, struct event_base *base,
			   struct evhttp *http, int answer_s)
{
	*connections = (struct http_connections){.answer_s = answer_s};
	TAILQ_INIT(&connections->list);
	connections->timer = event_new(base, -1, 0, sweep, connections);
	if (!connections->timer)
		return -1;
	evhttp_set_bevcb(http, begin, connections);
	return 0;
}

void http_connections_answer(struct http_connections *connections, struct evhttp_request *request)
{
	struct bufferevent *socket =
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
	struct http_connection *connection;

	TAILQ_FOREACH(connection, &connections->list, place)
	{
		if (connection->socket != socket)
			continue;
		connection->until_s = now_s() + connections->answer_s;
		TAILQ_REMOVE(&connections->list, connection, place);
		TAILQ_INSERT_TAIL(&connections->list, connection, place);
		return;
	}
}

void http_connections_free(struct http_connections *connections)
{
	if (!connections->timer)
		return;
	while (!TAILQ_EMPTY(&connections->list))
		forget(connections, TAILQ_FIRST(&connections->list));
	event_free(connections->timer);
	connections->timer = NULL;
}
