/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace serve: publishes figures of running processes over HTTP, for Prometheus.
 *
 * A timer reads the logs, and requests are answered with what was read last. So scrapes cost
 * almost nothing, however many there are.
 */
#include "commands.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "http_server.h"
#include "live_processes.h"
#include "metrics_text.h"

#define TIMEOUT_S   10			   /* of idle connections */
#define INTERVAL_US 250000		   /* as often as logs are written */
#define KEEP_NS	    UINT64_C(180000000000) /* three times the usual interval of scrapes */

struct serve_request {
	const char *metrics;
	uint64_t keep_ns;
	unsigned path_count;
};

static const struct option_row option_rows[] = {
	{"metrics", .value = "[ADDRESS:]PORT", .is_single = true,
	 .help = "Serve metrics for Prometheus at /metrics. Port 0 is any free one",
	 .apply = option_text, .offset = offsetof(struct serve_request, metrics)},
	{"paths", .value = "N",
	 .help = "Also serve the GPU time of the N call paths with most of it, for each process",
	 .apply = option_number, .offset = offsetof(struct serve_request, path_count), .min = 1,
	 .max = 100},
	{"keep", .value = "TIME", .expected = "a time such as 90s",
	 .help = "Show a process for TIME after its end (default: 180s)", .apply = option_time,
	 .offset = offsetof(struct serve_request, keep_ns)},
	{0},
};

/* Text that several answers share until all were sent. */
struct body {
	unsigned use_count;
	size_t bytes;
	char *text;
};

struct metrics_server {
	struct http_server http;
	struct live_processes processes;
	unsigned path_count;
	struct event *timer;
	struct body *bodies[METRICS_FORMATS]; /* NULL: not made since the last update */
};

static void release(struct body *body)
{
	if (!body || --body->use_count)
		return;
	free(body->text);
	free(body);
}

static void sent(const void *data, size_t data_bytes, void *context)
{
	(void)data;
	(void)data_bytes;
	release(context);
}

static struct body *make_body(const struct metrics_server *server, enum metrics_format format)
{
	struct body *body = calloc(1, sizeof(*body));

	if (!body)
		return NULL;
	body->text = metrics_text(&server->processes, format, server->path_count);
	if (!body->text) {
		free(body);
		return NULL;
	}
	body->bytes = strlen(body->text);
	body->use_count = 1;
	return body;
}

static void update(evutil_socket_t unused, short what, void *context)
{
	struct metrics_server *server = context;
	struct timeval next = {0, INTERVAL_US};

	(void)unused;
	(void)what;
	/* With more to read, answer requests in between. */
	if (live_processes_update(&server->processes))
		next.tv_usec = 1;
	for (int f = 0; f < METRICS_FORMATS; f++) {
		release(server->bodies[f]);
		server->bodies[f] = NULL;
	}
	event_add(server->timer, &next);
}

static void answer_metrics(struct metrics_server *server, struct evhttp_request *request)
{
	const char *accept =
		evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
	enum metrics_format format = metrics_choose(accept);
	struct body **body = &server->bodies[format];
	bool is_head = evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
	struct evbuffer *content = evbuffer_new();
	char length[24];

	if (!*body)
		*body = make_body(server, format);
	if (!content || !*body)
		goto fail;
	snprintf(length, sizeof(length), "%zu", (*body)->bytes);
	if (!is_head) {
		if (evbuffer_add_reference(content, (*body)->text, (*body)->bytes, sent, *body))
			goto fail;
		(*body)->use_count++;
	}
	http_add_header(request, "Content-Type", metrics_content_type(format));
	http_add_header(request, "Content-Length", length);
	http_add_header(request, "Cache-Control", "no-store");
	http_add_header(request, "Vary", "Accept");
	http_add_header(request, "X-Content-Type-Options", "nosniff");
	evhttp_send_reply(request, HTTP_OK, NULL, content);
	evbuffer_free(content);
	return;
fail:
	if (content)
		evbuffer_free(content);
	evhttp_send_error(request, HTTP_INTERNAL, NULL);
}

static void answer(struct evhttp_request *request, void *context)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));

	if (path && !strcmp(path, "/metrics"))
		answer_metrics(context, request);
	else
		evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

/*
 * Splits [ADDRESS:]PORT. An IPv6 address is in brackets. address_out has room for the whole text.
 * Returns false if it has another form.
 */
static bool split_address(const char *text, char *address_out, unsigned *port_out)
{
	const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
	size_t length = colon ? (size_t)(colon - text) : 0;
	unsigned long port = strtoul(digits, NULL, 10);

	if (!*digits || strspn(digits, "0123456789") != strlen(digits) || port > UINT16_MAX)
		return false;
	*port_out = (unsigned)port;
	if (!colon) {
		strcpy(address_out, LOOPBACK);
		return true;
	}
	if (length > 2 && *text == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	} else if (!length || *text == '[' || memchr(text, ':', length)) {
		return false;
	}
	memcpy(address_out, text, length);
	address_out[length] = '\0';
	return true;
}

/* Each process and each connection needs files. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int listen_and_serve(struct metrics_server *server, const char *text)
{
	char *address = malloc(strlen(text) + sizeof(LOOPBACK));
	unsigned wanted, port;
	int status = STATUS_FAILED;

	if (!address || !split_address(text, address, &wanted)) {
		print_error("cannot serve at '%s': it must be PORT, ADDRESS:PORT or "
			    "[IPV6-ADDRESS]:PORT",
			    text);
		goto out;
	}
	port = http_server_bind(&server->http, address, wanted);
	if (!port) {
		print_error("cannot serve on port %u of %s: %s; choose another with --metrics",
			    wanted, address, strerror(errno));
		goto out;
	}
	if (strchr(address, ':'))
		printf("http://[%s]:%u/metrics\n", address, port);
	else
		printf("http://%s:%u/metrics\n", address, port);
	fflush(stdout);
	update(-1, 0, server);
	http_server_run(&server->http);
	status = STATUS_OK;
out:
	free(address);
	return status;
}

static int serve(const struct serve_request *request, char **directories, size_t directory_count)
{
	struct live_names names = {0};
	struct metrics_server server = {
		.processes = {.directories = directories,
			      .directory_count = directory_count,
			      .keep_ns = request->keep_ns,
			      .names = request->path_count ? &names : NULL},
		.path_count = request->path_count,
	};
	int status = STATUS_FAILED;

	raise_file_limit();
	if (!live_names_init(&names) &&
	    !http_server_open(&server.http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD, TIMEOUT_S, answer,
			      &server))
		server.timer = event_new(server.http.base, -1, 0, update, &server);
	if (server.timer)
		status = listen_and_serve(&server, request->metrics);
	else
		print_error("cannot serve metrics: out of memory");
	if (server.timer)
		event_free(server.timer);
	http_server_close(&server.http);
	for (int f = 0; f < METRICS_FORMATS; f++)
		release(server.bodies[f]);
	live_processes_free(&server.processes);
	live_names_free(&names);
	return status;
}

static int run_serve(const struct command *command, int argc, char **argv)
{
	struct serve_request request = {.keep_ns = KEEP_NS};
	int status, count;

	status = command_parse(command, NULL, &request, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (!request.metrics) {
		print_error("no port given: --metrics [ADDRESS:]PORT (see xtrace serve --help)");
		return STATUS_FAILED;
	}
	for (int i = 1; i <= count; i++)
		if (access(argv[i], F_OK))
			print_note("'%s' does not exist yet; waiting for it", argv[i]);
	return serve(&request, argv + 1, (size_t)count);
}

static const char details[] =
	"DIR is the trace directory of a recording; without one, all processes that you can "
	"inspect are\n"
	"served. Processes may start and end at any time. Metrics count what was recorded, so "
	"nothing is\n"
	"counted while a process is stopped.\n\n"
	"  xtrace serve --metrics 9780                 for a Prometheus on this machine\n"
	"  xtrace serve --metrics 0.0.0.0:9780 DIR     for one elsewhere: anybody there can "
	"read it\n\n"
	"Without an address, only programs on this machine reach the port. There is no password "
	"and no\n"
	"encryption. docs/SERVICES.md lists the metrics.\n";

const struct command command_serve = {
	.name = "serve",
	.arguments = "--metrics [ADDRESS:]PORT [OPTION]... [DIR]...",
	.summary = "Publish metrics of running processes for Prometheus",
	.details = details,
	.options = option_rows,
	.run = run_serve,
};
