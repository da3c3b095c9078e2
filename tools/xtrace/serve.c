/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace serve: publishes figures of running processes over HTTP for Prometheus.
 *
 * A timer reads the logs, and requests are answered with what was read last. So scrapes cost
 * almost nothing, however many there are. Each family of series is a row of a table. OpenMetrics
 * 1.0 and the older text format differ only in the lines before the samples, and in the last line.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/message.h"
#include "commands.h"
#include "http_server.h"
#include "live_processes.h"
#include "merge/base/labels.h"

enum metrics_format {
	METRICS_PROMETHEUS, /* the older text format, version 0.0.4 */
	METRICS_OPENMETRICS,
	METRICS_FORMATS
};

#define OPENMETRICS_TYPE "application/openmetrics-text"
#define LABEL_BYTES	 4096

struct writer {
	FILE *out;
	const char *family; /* name of the family */
	const char *suffix; /* of its samples */
	char labels[LABEL_BYTES];
	const struct live_names *names; /* NULL: no call paths */
	unsigned path_count;
};

struct family {
	const char *name, *type, *unit, *help;
	/* One of these. A series for each GPU has its label. */
	void (*put)(struct writer *writer, const struct live_process *process);
	void (*put_gpu)(struct writer *writer, const char *label, const struct live_gpu *gpu);
	size_t count;	  /* offset of the count in struct live_totals */
	size_t gpu_count; /* the same in struct live_gpu */
	bool is_early;	  /* also before the whole log was read */
};

/* Appends NAME="VALUE" with escapes. Leaves out what does not fit. */
static void add_label(char *labels, const char *name, const char *value, size_t value_bytes)
{
	char plain[1100]; /* a call path */
	size_t at = strlen(labels);

	snprintf(plain, sizeof(plain), "%.*s", (int)value_bytes, value);
	utf8_make_plain(plain, '?');
	at += (size_t)snprintf(labels + at, LABEL_BYTES - at, "%s%s=\"", at ? "," : "", name);
	for (const char *p = plain; *p && at < LABEL_BYTES - 4; p++) {
		if (*p == '"' || *p == '\\')
			labels[at++] = '\\';
		labels[at++] = *p;
	}
	strcpy(labels + at, "\"");
}

/* The labels that all series of a process have. */
static void label_process(struct writer *writer, const struct live_process *process)
{
	const struct live_totals *totals = &process->log->totals;
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", process->log->header.pid);
	*writer->labels = '\0';
	add_label(writer->labels, "pid", pid, strlen(pid));
	add_label(writer->labels, "command", totals->command, strlen(totals->command));
	add_label(writer->labels, "log", process->name, process->name_length);
}

/* more: further labels, which need no escapes. */
static void put_start(const struct writer *writer, const char *more)
{
	fprintf(writer->out, "%s%s{%s%s%s} ", writer->family, writer->suffix, writer->labels,
		*more ? "," : "", more);
}

static void put_count(const struct writer *writer, const char *more, uint64_t value)
{
	put_start(writer, more);
	fprintf(writer->out, "%" PRIu64 "\n", value);
}

static void put_seconds(const struct writer *writer, const char *more, uint64_t ns)
{
	put_start(writer, more);
	fprintf(writer->out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
}

static void put_busy(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	put_seconds(writer, label, gpu->busy.covered_ns);
}

static void put_idle(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	char labels[128];

	for (int class = 0; class < IDLE_CLASSES; class ++) {
		snprintf(labels, sizeof(labels), "%s,cause=\"%s\"", label, idle_causes[class]);
		put_seconds(writer, labels, gpu->idle.ns[class]);
	}
}

/* Only directions that occurred. */
static void put_directions(struct writer *writer, const char *label, const uint64_t *values,
			   const uint64_t *counts)
{
	char labels[96];

	for (uint32_t kind = 0; kind < LIVE_COPY_KINDS; kind++) {
		if (!counts[kind])
			continue;
		snprintf(labels, sizeof(labels), "%s,direction=\"%s\"", label,
			 copy_kind_label(kind));
		put_count(writer, labels, values[kind]);
	}
}

static void put_copies(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	put_directions(writer, label, gpu->copy_counts, gpu->copy_counts);
}

static void put_copied(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	put_directions(writer, label, gpu->copy_bytes, gpu->copy_counts);
}

static void put_lost(struct writer *writer, const struct live_process *process)
{
	const struct live_totals *totals = &process->log->totals;

	put_count(writer, "reason=\"size_limit\"", live_totals_lost(totals, true));
	put_count(writer, "reason=\"other\"", live_totals_lost(totals, false));
}

static void put_damaged(struct writer *writer, const struct live_process *process)
{
	put_count(writer, "", live_log_damaged_count(process->log));
}

static void put_cost(struct writer *writer, const struct live_process *process)
{
	static const char *const parts[][2] = {{"part=\"callbacks\"", "callbacks.ns"},
					       {"part=\"flusher\"", "flusher.cpu_ns"},
					       {"part=\"writer\"", "writer.cpu_ns"}};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		put_seconds(writer, parts[i][0],
			    live_account_value(&process->log->totals.accounts, parts[i][1]));
}

/* The row with most time of those with less than before, or equal time and a later number. */
static size_t next_path(const struct live_ranking *paths, size_t last)
{
	uint64_t last_ns = last < paths->count ? paths->rows[last].ns : UINT64_MAX;
	size_t best = paths->count;

	for (size_t i = 0; i < paths->count; i++) {
		uint64_t ns = paths->rows[i].ns;
		bool is_after = ns < last_ns || (ns == last_ns && i > last);

		if (ns && is_after && (best == paths->count || ns > paths->rows[best].ns))
			best = i;
	}
	return best;
}

static void put_paths(struct writer *writer, const struct live_process *process)
{
	const struct live_hot *hot = &process->log->hot;
	size_t row = hot->paths.count, labels_length = strlen(writer->labels);

	for (unsigned i = 0; i < writer->path_count; i++) {
		const char *path;

		row = next_path(&hot->paths, row);
		if (row == hot->paths.count)
			break;
		path = live_names_path(writer->names, row);
		add_label(writer->labels, "path", path, strlen(path));
		put_seconds(writer, "", hot->paths.rows[row].ns);
		writer->labels[labels_length] = '\0';
	}
}

static void put_log_bytes(struct writer *writer, const struct live_process *process)
{
	put_count(writer, "", process->log_bytes);
}

static void put_state(struct writer *writer, const struct live_process *process)
{
	char label[64];

	snprintf(label, sizeof(label), "state=\"%s\"",
		 process->has_ended ? "ended" : process_state_name(process->state));
	put_count(writer, label, 1);
}

#define COUNT(member)	  .count = offsetof(struct live_totals, member)
#define GPU_COUNT(member) .gpu_count = offsetof(struct live_gpu, member)

static const struct family families[] = {
	{"xtrace_state", "gauge", "", "1 for the state that the process is in.", .put = put_state,
	 .is_early = true},
	{"xtrace_gpu_busy_seconds", "counter", "seconds",
	 "Time in which the process ran a kernel, copy or memset on the GPU.", .put_gpu = put_busy},
	{"xtrace_gpu_idle_seconds", "counter", "seconds",
	 "Time in which the GPU ran nothing of the process, since its first work, by cause.",
	 .put_gpu = put_idle},
	{"xtrace_kernels", "counter", "", "Kernels that ran.", GPU_COUNT(kernel_count)},
	{"xtrace_launches", "counter", "", "Launches of kernels and graphs.", COUNT(launch_count)},
	{"xtrace_copies", "counter", "", "Memory copies.", .put_gpu = put_copies},
	{"xtrace_copied_bytes", "counter", "bytes", "Bytes copied.", .put_gpu = put_copied},
	{"xtrace_memsets", "counter", "", "Memsets.", GPU_COUNT(memset_count)},
	{"xtrace_allocated_bytes", "gauge", "bytes",
	 "GPU memory that was allocated while recording and not freed.",
	 GPU_COUNT(allocated_bytes)},
	{"xtrace_api_errors", "counter", "", "CUDA calls that failed.", COUNT(error_count)},
	{"xtrace_lost_events", "counter", "", "Events that are missing in the log.",
	 .put = put_lost},
	{"xtrace_damaged_chunks", "counter", "", "Parts of the log that cannot be read.",
	 .put = put_damaged},
	{"xtrace_tracer_seconds", "counter", "seconds", "CPU time that xtrace used in the process.",
	 .put = put_cost},
	{"xtrace_path_gpu_seconds", "counter", "seconds",
	 "GPU time of the call paths with most of it. Work that overlaps counts twice.",
	 .put = put_paths},
	{"xtrace_log_bytes", "gauge", "bytes", "Size of the log.", .put = put_log_bytes,
	 .is_early = true},
};

static uint64_t count_at(const void *counts, size_t offset)
{
	return *(const uint64_t *)((const char *)counts + offset);
}

static void put_gpus(struct writer *writer, const struct family *family,
		     const struct live_process *process)
{
	const struct live_totals *totals = &process->log->totals;
	char label[32];

	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		const struct live_gpu *gpu = totals->gpus[g];

		if (!gpu)
			continue;
		snprintf(label, sizeof(label),
			 g == LIVE_GPU_UNKNOWN ? "gpu=\"unknown\"" : "gpu=\"%u\"", g);
		if (family->put_gpu)
			family->put_gpu(writer, label, gpu);
		else
			put_count(writer, label, count_at(gpu, family->gpu_count));
	}
}

static void put_heading(struct writer *writer, const struct family *family,
			enum metrics_format format)
{
	bool is_counter = !strcmp(family->type, "counter");
	bool is_openmetrics = format == METRICS_OPENMETRICS;

	writer->family = family->name;
	writer->suffix = is_counter ? "_total" : "";
	/* The older format has one name for the family and its samples. */
	fprintf(writer->out, "# TYPE %s%s %s\n", family->name, is_openmetrics ? "" : writer->suffix,
		family->type);
	if (is_openmetrics && *family->unit)
		fprintf(writer->out, "# UNIT %s %s\n", family->name, family->unit);
	fprintf(writer->out, "# HELP %s%s %s\n", family->name, is_openmetrics ? "" : writer->suffix,
		family->help);
}

/* Labels must not change, and totals that grow by past events would look like a burst of work. */
static bool is_shown(const struct family *family, const struct live_process *process)
{
	return process->log->is_current || (family->is_early && *process->log->totals.command);
}

static void put_family(struct writer *writer, const struct family *family,
		       const struct live_processes *processes)
{
	for (size_t i = 0; i < processes->count; i++) {
		const struct live_process *process = &processes->rows[i];

		if (!is_shown(family, process))
			continue;
		label_process(writer, process);
		if (family->put)
			family->put(writer, process);
		else if (family->count)
			put_count(writer, "", count_at(&process->log->totals, family->count));
		else
			put_gpus(writer, family, process);
	}
}

static void put_process_count(struct writer *writer, const struct live_processes *processes)
{
	size_t running_count = 0;

	for (size_t i = 0; i < processes->count; i++)
		running_count += !processes->rows[i].has_ended;
	fprintf(writer->out,
		"# TYPE xtrace_processes gauge\n"
		"# HELP xtrace_processes Running processes that carry xtrace.\n"
		"xtrace_processes %zu\n",
		running_count);
}

/*
 * path_count: how many call paths of each process to write, those with most GPU time. Returns text
 * to free(), or NULL if out of memory.
 */
static char *metrics_text(const struct live_processes *processes, enum metrics_format format,
			  unsigned path_count)
{
	struct writer writer = {.names = processes->names, .path_count = path_count};
	char *text = NULL;
	size_t text_bytes;
	bool has_failed;

	writer.out = open_memstream(&text, &text_bytes);
	if (!writer.out)
		return NULL;
	put_process_count(&writer, processes);
	for (size_t f = 0; f < sizeof(families) / sizeof(*families); f++) {
		if (families[f].put == put_paths && !path_count)
			continue;
		put_heading(&writer, &families[f], format);
		put_family(&writer, &families[f], processes);
	}
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", writer.out);
	has_failed = ferror(writer.out);
	if (!fclose(writer.out) && !has_failed)
		return text;
	free(text);
	return NULL;
}

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
	free_all(body->text, body);
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
	enum metrics_format format = accept && strstr(accept, OPENMETRICS_TYPE)
					     ? METRICS_OPENMETRICS
					     : METRICS_PROMETHEUS;
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
	http_add_header(request, "Content-Type",
			format == METRICS_OPENMETRICS ? OPENMETRICS_TYPE
				"; version=1.0.0; charset=utf-8"
						      : "text/plain; version=0.0.4; charset=utf-8");
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
	"DIR is the trace directory of a recording; without one, all processes that you can\n"
	"inspect are served. Processes may start and end at any time. Metrics count what was\n"
	"recorded, so nothing is counted while a process is stopped.\n\n"
	"  xtrace serve --metrics 9780                 for a Prometheus on this machine\n"
	"  xtrace serve --metrics 0.0.0.0:9780 DIR     for one elsewhere: anybody there can read "
	"it\n\n"
	"Without an address, only programs on this machine reach the port. There is no password\n"
	"and no encryption. docs/SERVICES.md lists the metrics.\n";

const struct command command_serve = {
	.name = "serve",
	.arguments = "--metrics [ADDRESS:]PORT [OPTION]... [DIR]...",
	.summary = "Publish metrics of running processes for Prometheus",
	.details = details,
	.options = option_rows,
	.run = run_serve,
};
