/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API calls by function.
 */
#include "merge/sums/calls.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/tables.h"
#include "log/base/compare.h"
#include "merge/base/pack.h"
#include "merge/naming/joined_paths.h"
#include "merge/base/labels.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

static struct call_row *row_of(struct calls *calls, uint32_t name)
{
	uint32_t *place = by_id(calls->places, name);

	if (*place)
		return &calls->list[*place - 1];
	if (calls->count >= CALLS_FUNCTIONS_MAX && name != NAME_EMPTY)
		return row_of(calls, NAME_EMPTY);
	list_append(*calls, (struct call_row){.name = name});
	*place = (uint32_t)calls->count;
	return &calls->list[calls->count - 1];
}

/* Adds the failure, with its count. */
static void add_failure(struct calls *calls, const struct failure *failure)
{
	const uint64_t key[] = {(uint64_t)failure->name << 32 | failure->node, failure->process,
				failure->result};
	uint32_t id = interner_find(&calls->failure_keys, key, sizeof(key));
	bool is_new;

	if (!id && calls->failures.count == CALLS_FAILURES_MAX) {
		calls->other_failure_count += failure->count;
		return;
	}
	if (id) {
		calls->failures.list[id - 1].count += failure->count;
		return;
	}
	xt_intern(&calls->failure_keys, key, sizeof(key), &is_new);
	list_append(calls->failures, *failure);
}

/* Adds a call. node: as in struct failure. */
static void calls_count(struct calls *calls, struct failure *failure, const struct launch *call,
			uint64_t duration_ns)
{
	struct call_row *row = row_of(calls, failure->name);

	if (!row->durations.count) {
		row->stack = call->stack;
		row->api = call->api;
	}
	durations_add(&row->durations, duration_ns);
	if (!failure->result)
		return;
	row->failed_count++;
	failure->api = call->api;
	failure->count = 1;
	add_failure(calls, failure);
}

static uint32_t node_of(const struct frames *frames, uint32_t stack)
{
	return frames_has_stack(frames, stack) ? joined_paths_node(frames, stack) : PATH_ROOT;
}

void calls_add(struct calls *calls, uint32_t process, const struct frames *frames,
	       const struct launch *call, uint64_t duration_ns, uint64_t result)
{
	struct failure failure = {
		.process = process,
		.name = frames_api_name(frames, call->stack, call->api),
		.node = result ? node_of(frames, call->stack) : PATH_ROOT,
		.result = result,
	};

	calls_count(calls, &failure, call, duration_ns);
}

void calls_add_apart(struct calls *calls, const struct frames *frames, const struct launch *call,
		     uint64_t duration_ns, uint64_t result)
{
	struct failure failure = {
		.name = frames_api_name(frames, call->stack, call->api),
		.node = call->stack,
		.result = result,
	};

	calls_count(calls, &failure, call, duration_ns);
}

static void join_row(struct calls *calls, const struct frames *frames, struct call_row *from)
{
	struct call_row *row = row_of(calls, frames_api_name(frames, from->stack, from->api));

	row->failed_count += from->failed_count;
	durations_join(&row->durations, &from->durations);
}

static void pack_row(struct pack *pack, struct call_row *row)
{
	PACK(pack, row->stack);
	PACK(pack, row->api);
	PACK(pack, row->failed_count);
	durations_pack(&row->durations, pack);
}

/* node of a failure that was packed: its stack. */
static void pack_failure(struct pack *pack, struct failure *failure)
{
	PACK(pack, failure->node);
	PACK(pack, failure->api);
	PACK(pack, failure->result);
	PACK(pack, failure->count);
}

void calls_pack(struct calls *calls, uint32_t process, const struct frames *frames,
		struct pack *pack)
{
	uint64_t row_count = calls->count, failure_count = calls->failures.count;

	if (!pack->is_reading && (row_count > CALLS_FUNCTIONS_MAX || calls->other_failure_count))
		pack->error = -E2BIG;
	PACK(pack, row_count);
	PACK(pack, failure_count);
	for (uint64_t r = 0; r < row_count && !pack->error; r++) {
		struct call_row read = {0}, *row = pack->is_reading ? &read : &calls->list[r];

		pack_row(pack, row);
		if (pack->is_reading && !pack->error)
			join_row(calls, frames, row);
		if (pack->is_reading)
			histogram_free(&read.durations.histogram);
	}
	for (uint64_t f = 0; f < failure_count && !pack->error; f++) {
		struct failure read = {.process = process};
		struct failure *failure = pack->is_reading ? &read : &calls->failures.list[f];

		pack_failure(pack, failure);
		if (!pack->is_reading || pack->error)
			continue;
		read.name = frames_api_name(frames, read.node, read.api);
		read.node = node_of(frames, read.node);
		if (read.count)
			add_failure(calls, &read);
	}
}

void calls_free(struct calls *calls)
{
	for (size_t r = 0; r < calls->count; r++)
		histogram_free(&calls->list[r].durations.histogram);
	interner_free(&calls->failure_keys);
	free_all(calls->list, calls->places.list, calls->failures.list);
	*calls = (struct calls){0};
}

COMPARE_BY(compare_rows, struct call_row, DOWN(durations.total_ns) UP(name))

COMPARE_BY(compare_failures, struct failure, DOWN(count) UP(result) UP(node) UP(process) UP(name))

void calls_sort(struct calls *calls)
{
	SORT(calls->list, calls->count, compare_rows);
	SORT(calls->failures.list, calls->failures.count, compare_failures);
}

static void calls_add_call(struct sink *sink, const struct process *process,
			   const struct launch *call, uint64_t duration_ns, uint64_t result)
{
	if (sink->is_apart) {
		calls_add_apart(sink->state, process->frames, call, duration_ns, result);
		return;
	}
	calls_add(sink->state, process_root(process, sink->settings), process->frames, call,
		  duration_ns, result);
}

static void pack_log(struct sink *sink, const struct process *process, struct pack *pack)
{
	calls_pack(sink->state, process_root(process, sink->settings), process->frames, pack);
}

static void calls_end(struct sink *sink, const struct run *run)
{
	(void)run;
	calls_sort(sink->state);
}

static void calls_free_state(struct sink *sink)
{
	calls_free(sink->state);
}

const struct exporter analysis_calls = {.state_bytes = sizeof(struct calls),
					.on.call = calls_add_call,
					.pack = pack_log,
					.end = calls_end,
					.free = calls_free_state};

static const struct column_def call_columns[] = {
	COLUMN("count", COUNT, FROM(call_row, durations.count), "calls", HEAD("calls", 12)),
	COLUMN("failed_count", COUNT, FROM(call_row, failed_count), "calls that returned an error",
	       WIDE("failed", 8, 60)),
	COLUMN("total_ns", NS, FROM(call_row, durations.total_ns), "time in all calls",
	       HEAD("total", 12)),
	COLUMN("mean_ns", NS, OTHER, "mean time in a call", WIDE("mean", 12, 70), TEXT_ONLY),
	COLUMN("min_ns", NS, FROM(call_row, durations.min_ns), "shortest call",
	       WIDE("min", 12, 120)),
	COLUMN("p99_ns", NS, OTHER, "99 % of the calls are not longer; exact to 1 %",
	       WIDE("p99", 12, 120)),
	COLUMN("max_ns", NS, FROM(call_row, durations.max_ns), "longest call",
	       WIDE("max", 12, 120)),
	COLUMN("name", TEXT, OTHER, "function", LAST("function")),
};

static void open_calls(struct table_rows *rows)
{
	const struct calls *calls = run_analysis(rows->run, &analysis_calls);

	table_records(rows, calls->list, calls->count);
}

static void put_call(struct table_rows *rows, struct cells *cells)
{
	const struct call_row *row = rows->record;

	cells_put(cells, cell_number(row->durations.total_ns / row->durations.count));
	cells_put(cells, cell_number(durations_p99_ns(&row->durations)));
	cells_put(cells, row->name == NAME_EMPTY ? cell_text("[other functions]")
						 : cell_name(&rows->run->paths.names, row->name));
}

const struct table_def table_calls = {
	.name = "api_calls",
	.title = "API calls by function",
	.what = "CUDA calls by function, longest time first.",
	HAS_COLUMNS(call_columns),
	.shows = "count failed_count total_ns mean_ns min_ns p99_ns max_ns name",
	.view = "top_calls",
	.open = open_calls,
	.row = put_call,
};

static const struct column_def failure_columns[] = {
	COLUMN("count", COUNT, FROM(failure, count), "calls", HEAD("count", 12)),
	COLUMN("error", CODE, FROM(failure, result), "code that the calls returned"),
	COLUMN("error_name", TEXT, OTHER, "its name, or empty"),
	COLUMN("error_text", TEXT, OTHER, "error", WIDE("error", 40, 100), TEXT_ONLY),
	COLUMN("name", TEXT, OTHER, "function"),
	COLUMN("process", TEXT, OTHER, "process, if paths begin with it"),
	COLUMN("path", PATH, OTHER, "call path of the calls", .json = "frames"),
	COLUMN("place", PATH, OTHER, "call path and function", LAST("call path"), TEXT_ONLY),
};

static void open_failures(struct table_rows *rows)
{
	const struct calls *calls = run_analysis(rows->run, &analysis_calls);

	table_records(rows, calls->failures.list, calls->failures.count);
	rows->left_out_count = calls->other_failure_count;
}

static void put_failure(struct table_rows *rows, struct cells *cells)
{
	const struct failure *row = rows->record;
	const struct paths *paths = &rows->run->paths;
	const char *label = error_label(row->result);
	struct cell path = cell_path(paths, row->node);

	path.root = row->process;
	cells_put(cells, cell_text(label ? label : ""));
	cells_put(cells,
		  cell_owned(rows, label ? xt_asprintf("%s (%" PRIu64 ")", label, row->result)
					 : xt_asprintf("error %" PRIu64, row->result)));
	cells_put(cells, cell_name(&paths->names, row->name));
	cells_put(cells, cell_name(&paths->names, row->process));
	cells_put(cells, path);
	path.leaf = row->name;
	cells_put(cells, path);
}

const struct table_def table_failures = {
	.name = "failed_calls",
	.title = "Failed calls by error and call path",
	.what = "CUDA calls that returned an error, most frequent first.",
	HAS_COLUMNS(failure_columns),
	.shows = "count error_text place",
	.open = open_failures,
	.row = put_failure,
	.json.left_out = "not_told_apart_count",
	.left_out_text = "other failed calls",
};
