/* SPDX-License-Identifier: Apache-2.0 */
#include "http_connections.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
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

int http_connections_watch(struct http_connections *connections, struct event_base *base,
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

void http_connections_answer(struct http_connections *connections, struct evhttp_request *request)
{
	struct http_connection *connection = find(connections, request);

	if (connection)
		change_state(connection, false, ANSWER_TIMES * connections->idle_s);
	evhttp_request_set_on_complete_cb(request, note_sent, connections);
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
