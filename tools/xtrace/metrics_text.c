/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of a table for each family of series. OpenMetrics 1.0 and the older text format differ
 * only in the lines before the samples, and in the last line.
 */
#include "metrics_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/labels.h"
#include "base/utf8.h"

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
	void (*put)(struct writer *writer, const struct live_process *process);
	bool is_early; /* also before the whole log was read */
};

enum metrics_format metrics_choose(const char *accept)
{
	return accept && strstr(accept, OPENMETRICS_TYPE) ? METRICS_OPENMETRICS
							  : METRICS_PROMETHEUS;
}

const char *metrics_content_type(enum metrics_format format)
{
	return format == METRICS_OPENMETRICS ? OPENMETRICS_TYPE "; version=1.0.0; charset=utf-8"
					     : "text/plain; version=0.0.4; charset=utf-8";
}

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
	const struct live_totals *totals = live_log_totals(process->log);
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", live_log_header(process->log)->pid);
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

static void label_gpu(char label[32], unsigned gpu)
{
	if (gpu == LIVE_GPU_UNKNOWN)
		strcpy(label, "gpu=\"unknown\"");
	else
		snprintf(label, 32, "gpu=\"%u\"", gpu);
}

typedef void put_gpu(struct writer *writer, const char *label, const struct live_gpu *gpu);

static void put_gpus(struct writer *writer, const struct live_process *process, put_gpu *put)
{
	const struct live_totals *totals = live_log_totals(process->log);
	char label[32];

	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		if (!totals->gpus[g])
			continue;
		label_gpu(label, g);
		put(writer, label, totals->gpus[g]);
	}
}

static void put_gpu_busy(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	put_seconds(writer, label, gpu->busy.covered_ns);
}

static void put_busy(struct writer *writer, const struct live_process *process)
{
	put_gpus(writer, process, put_gpu_busy);
}

static void put_gpu_idle(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	char labels[128];

	for (int class = 0; class < IDLE_CLASSES; class ++) {
		size_t length;
		const char *cause = idle_class_text((enum idle_class) class, &length);

		snprintf(labels, sizeof(labels), "%s,cause=\"%.*s\"", label, (int)length, cause);
		put_seconds(writer, labels, gpu->idle.ns[class]);
	}
}

static void put_idle(struct writer *writer, const struct live_process *process)
{
	put_gpus(writer, process, put_gpu_idle);
}

static void put_gpu_kernels(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	put_count(writer, label, gpu->kernel_count);
}

static void put_kernels(struct writer *writer, const struct live_process *process)
{
	put_gpus(writer, process, put_gpu_kernels);
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

static void put_gpu_copies(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	put_directions(writer, label, gpu->copy_counts, gpu->copy_counts);
}

static void put_copies(struct writer *writer, const struct live_process *process)
{
	put_gpus(writer, process, put_gpu_copies);
}

static void put_gpu_copied(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	put_directions(writer, label, gpu->copy_bytes, gpu->copy_counts);
}

static void put_copied(struct writer *writer, const struct live_process *process)
{
	put_gpus(writer, process, put_gpu_copied);
}

static void put_gpu_memsets(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	put_count(writer, label, gpu->memset_count);
}

static void put_memsets(struct writer *writer, const struct live_process *process)
{
	put_gpus(writer, process, put_gpu_memsets);
}

static void put_gpu_memory(struct writer *writer, const char *label, const struct live_gpu *gpu)
{
	put_count(writer, label, gpu->allocated_bytes);
}

static void put_memory(struct writer *writer, const struct live_process *process)
{
	put_gpus(writer, process, put_gpu_memory);
}

static void put_launches(struct writer *writer, const struct live_process *process)
{
	put_count(writer, "", live_log_totals(process->log)->launch_count);
}

static void put_errors(struct writer *writer, const struct live_process *process)
{
	put_count(writer, "", live_log_totals(process->log)->error_count);
}

static void put_lost(struct writer *writer, const struct live_process *process)
{
	const struct live_totals *totals = live_log_totals(process->log);

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
			    live_totals_account(live_log_totals(process->log), parts[i][1]));
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
	const struct live_hot *hot = live_log_hot(process->log);
	size_t row = hot ? hot->paths.count : 0, labels_length = strlen(writer->labels);

	for (unsigned i = 0; hot && i < writer->path_count; i++) {
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

static const struct family families[] = {
	{"xtrace_state", "gauge", "", "1 for the state that the process is in.", put_state, true},
	{"xtrace_gpu_busy_seconds", "counter", "seconds",
	 "Time in which the process ran a kernel, copy or memset on the GPU.", put_busy, false},
	{"xtrace_gpu_idle_seconds", "counter", "seconds",
	 "Time in which the GPU ran nothing of the process, since its first work, by cause.",
	 put_idle, false},
	{"xtrace_kernels", "counter", "", "Kernels that ran.", put_kernels, false},
	{"xtrace_launches", "counter", "", "Launches of kernels and graphs.", put_launches, false},
	{"xtrace_copies", "counter", "", "Memory copies.", put_copies, false},
	{"xtrace_copied_bytes", "counter", "bytes", "Bytes copied.", put_copied, false},
	{"xtrace_memsets", "counter", "", "Memsets.", put_memsets, false},
	{"xtrace_allocated_bytes", "gauge", "bytes",
	 "GPU memory that was allocated while recording and not freed.", put_memory, false},
	{"xtrace_api_errors", "counter", "", "CUDA calls that failed.", put_errors, false},
	{"xtrace_lost_events", "counter", "", "Events that are missing in the log.", put_lost,
	 false},
	{"xtrace_damaged_chunks", "counter", "", "Parts of the log that cannot be read.",
	 put_damaged, false},
	{"xtrace_tracer_seconds", "counter", "seconds", "CPU time that xtrace used in the process.",
	 put_cost, false},
	{"xtrace_path_gpu_seconds", "counter", "seconds",
	 "GPU time of the call paths with most of it. Work that overlaps counts twice.", put_paths,
	 false},
	{"xtrace_log_bytes", "gauge", "bytes", "Size of the log.", put_log_bytes, true},
};

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
	return live_log_is_current(process->log) ||
	       (family->is_early && *live_log_totals(process->log)->command);
}

static void put_family(struct writer *writer, const struct family *family,
		       const struct live_processes *processes)
{
	for (size_t i = 0; i < processes->count; i++) {
		const struct live_process *process = &processes->rows[i];

		if (!is_shown(family, process))
			continue;
		label_process(writer, process);
		family->put(writer, process);
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

char *metrics_text(const struct live_processes *processes, enum metrics_format format,
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
