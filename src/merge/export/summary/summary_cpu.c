/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "merge/export/summary/summary_text.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/sums/tables.h"

#define TEXT_BYTES 512
#define SMALL_PART 1000 /* rows below this part of the idle time are not shown */

static const struct column columns[] = {{"time", 12, 0, false}, {"share", 8, 0, false}};

/* Idle time with the same line of code and the same state. */
struct idle_row {
	uint32_t frame; /* name: the innermost frame of user code, else the innermost frame */
	uint32_t state; /* name: the label of the state; NAME_EMPTY: the thread ran */
	uint64_t ns;
};

struct idle_rows {
	struct idle_row *list;
	size_t count;
	uint64_t sum_ns;
};

static bool begins(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

static bool is_state(const char *text)
{
	return cpu_is_label(text) || !strcmp(text, FRAME_NOT_SAMPLED);
}

/* Describes the path below the class of a node. False if the CPU was not the cause. */
static bool describe(const struct paths *paths, uint32_t node, struct idle_row *row)
{
	uint32_t innermost = NAME_EMPTY;

	*row = (struct idle_row){.ns = paths->nodes[node].weights[WEIGHT_GPU_IDLE]};
	for (; node != PATH_ROOT; node = paths->nodes[node].parent) {
		uint32_t name = paths->nodes[node].name;
		const char *text = names_text(&paths->names, name, NULL);

		if (begins(text, "[idle: "))
			break;
		if (is_state(text)) {
			row->state = row->state == NAME_EMPTY ? name : row->state;
			continue;
		}
		innermost = innermost == NAME_EMPTY ? name : innermost;
		if (row->frame == NAME_EMPTY && paths_is_user_frame(paths, name))
			row->frame = name;
	}
	row->frame = row->frame == NAME_EMPTY ? innermost : row->frame;
	return row->frame != NAME_EMPTY || row->state != NAME_EMPTY;
}

COMPARE_BY(compare_keys, struct idle_row, UP(frame) UP(state))

static int compare_times(const void *a, const void *b)
{
	const struct idle_row *x = a, *y = b;

	return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : compare_keys(a, b);
}

/* Sums equal rows, and sorts them by time. */
static int collect(const struct run *run, struct idle_rows *rows)
{
	const struct paths *paths = &run->paths;
	size_t kept = 0;

	*rows = (struct idle_rows){.list = calloc(paths->node_count, sizeof(*rows->list))};
	if (!rows->list)
		return -ENOMEM;
	for (uint32_t n = PATH_ROOT + 1; n < paths->node_count; n++)
		if (paths->nodes[n].weights[WEIGHT_GPU_IDLE] &&
		    describe(paths, n, &rows->list[rows->count]))
			rows->sum_ns += rows->list[rows->count++].ns;
	if (!rows->count)
		return 0;
	qsort(rows->list, rows->count, sizeof(*rows->list), compare_keys);
	for (size_t r = 1; r < rows->count; r++) {
		if (compare_keys(&rows->list[kept], &rows->list[r]))
			rows->list[++kept] = rows->list[r];
		else
			rows->list[kept].ns += rows->list[r].ns;
	}
	rows->count = kept + 1;
	qsort(rows->list, rows->count, sizeof(*rows->list), compare_times);
	return 0;
}

static void put_row(struct output *out, const struct run *run, const struct idle_row *row,
		    uint64_t sum_ns)
{
	const char *frame = names_text(&run->paths.names, row->frame, NULL);
	const char *state = names_text(&run->paths.names, row->state, NULL);
	char time[TIME_BYTES], share[SHARE_BYTES], text[TEXT_BYTES];
	const char *figures[] = {time, share};

	format_time(time, row->ns);
	format_share(share, row->ns, sum_ns);
	snprintf(text, sizeof(text), "%s%s%s", frame, frame[0] && state[0] ? " " : "", state);
	put_figures(out, columns, sizeof(columns) / sizeof(*columns), figures);
	put_cell(out, text, strlen(text));
	output_text(out, "\n", 1);
}

static void put_facts(struct output *out, const struct run *run)
{
	const struct cpu_facts *facts = &run->cpu->facts;
	uint64_t read = losses_account(run->sums->losses.accounts, "cpu.python.read");
	uint64_t changed = losses_account(run->sums->losses.accounts, "cpu.python.changed");
	char share[SHARE_BYTES], text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%.0f Hz, %s%s", facts->hz,
		 facts->has_perf ? "/proc and perf events" : "/proc only",
		 facts->estimates_kernel ? "; time in the kernel is estimated" : "");
	put_title(out, "CPU samples", "");
	put_fact(out, "source", text);
	put_count(out, "processes", facts->process_count);
	put_count(out, "threads", facts->thread_count);
	put_count(out, "observations",
		  losses_account(run->sums->losses.accounts, "cpu.observations"));
	if (read) {
		format_share(share, read - (changed < read ? changed : read), read);
		put_fact(out, "Python frames of running threads: stable while read", share);
	}
	if (facts->long_idle_ns) {
		format_share(share, facts->long_covered_ns, facts->long_idle_ns);
		put_fact(out, "idle time in gaps of 20 ms or more with a CPU path", share);
	}
	if (facts->why_no_memory[0]) {
		snprintf(text, sizeof(text),
			 "Python code and waits have no path, because memory cannot be read: %s",
			 facts->why_no_memory);
		put_note(out, text);
	}
	if (facts->has_perf)
		return;
	snprintf(text, sizeof(text), "Running native code has no call path: %s",
		 facts->why[0] ? facts->why : "perf events were not used");
	put_note(out, text);
}

int summary_put_cpu(struct sink *sink, const struct run *run)
{
	struct idle_rows rows;
	size_t shown;
	int error;

	if (!run->cpu->facts.process_count)
		return 0;
	error = collect(run, &rows);
	while (rows.count && rows.list[rows.count - 1].ns < rows.sum_ns / SMALL_PART)
		rows.count--;
	shown = rows_to_show(rows.count, sink->settings);
	if (!error && rows.count && run_wants(run, WEIGHT_GPU_IDLE)) {
		put_top_title(&sink->out, "GPU idle time by what the CPU did", shown, rows.count);
		put_heads(&sink->out, columns, sizeof(columns) / sizeof(*columns), "CPU code");
		for (size_t r = 0; r < shown; r++)
			put_row(&sink->out, run, &rows.list[r], rows.sum_ns);
	}
	free(rows.list);
	if (!error)
		put_facts(&sink->out, run);
	return error;
}

int put_cpu_json(struct json *json, const struct run *run)
{
	const struct cpu_facts *facts = &run->cpu->facts;
	struct idle_rows rows;
	int error;

	if (!facts->process_count)
		return 0;
	error = collect(run, &rows);
	json_begin_object(json, "cpu");
	json_string(json, "source", facts->has_perf ? "perf" : "proc");
	if (facts->why[0])
		json_string(json, "why_no_perf", facts->why);
	if (facts->why_no_memory[0])
		json_string(json, "why_no_memory", facts->why_no_memory);
	json_u64(json, "hz", (uint64_t)(facts->hz + 0.5));
	json_u64(json, "process_count", facts->process_count);
	json_u64(json, "thread_count", facts->thread_count);
	json_u64(json, "long_idle_ns", facts->long_idle_ns);
	json_u64(json, "long_idle_covered_ns", facts->long_covered_ns);
	json_u64(json, "cpu_time_ns", table_sum(&run->paths, WEIGHT_CPU_TIME));
	json_u64(json, "off_cpu_ns", table_sum(&run->paths, WEIGHT_OFF_CPU));
	json_begin_array(json, "idle");
	for (size_t r = 0; r < rows.count && !error; r++) {
		json_begin_object(json, NULL);
		json_u64(json, "gpu_idle_ns", rows.list[r].ns);
		json_string(json, "code", names_text(&run->paths.names, rows.list[r].frame, NULL));
		json_string(json, "state", names_text(&run->paths.names, rows.list[r].state, NULL));
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
	free(rows.list);
	return error;
}
