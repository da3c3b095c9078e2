/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary JSON. docs/SUMMARY.md documents each name and unit.
 */
#include "merge/export/summary/summary_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/base/grow.h"
#include "merge/base/pack.h"
#include "merge/export/formats.h"
#include "merge/export/summary/summary_cpu.h"
#include "merge/export/summary/summary_findings.h"
#include "merge/export/summary/summary_headline.h"
#include "merge/export/summary/summary_json_tables.h"
#include "merge/export/tables/table_writers.h"
#include "merge/export/summary/summary_queries.h"
#include "merge/export/summary/summary_collectives.h"
#include "merge/export/summary/summary_mpi.h"
#include "merge/export/summary/summary_ranks.h"
#include "merge/sums/processes.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/sums/tables.h"
#include "merge/sums/build_tree.h"

static void put_idle(struct json *json, const uint64_t idle_ns[IDLE_CLASSES])
{
	json_begin_object(json, "gpu_idle_by_class_ns");
	for (int class = 0; class < IDLE_CLASSES; class ++)
		json_u64(json, idle_labels[class], idle_ns[class]);
	json_end_object(json);
}

static void put_collectives(struct json *json, const struct collective_sums *sums)
{
	json_u64(json, "collective_count", sums->count);
	json_u64(json, "collective_time_ns", sums->gpu_ns);
	json_u64(json, "collective_alone_ns", sums->alone_ns);
}

static void put_device(struct json *json, const struct process_sums *process,
		       const struct device_sums *sums)
{
	uint64_t idle_ns = 0;

	for (int class = 0; class < IDLE_CLASSES; class ++)
		idle_ns += sums->idle_ns[class];
	json_begin_object(json, NULL);
	if (sums->device != ROOT_UNKNOWN)
		json_u64(json, "device", sums->device);
	json_string(json, "name", sums->name);
	if (sums->uuid[0])
		json_string(json, "uuid", sums->uuid);
	json_u64(json, "kernel_count", sums->counts[WORK_KERNEL]);
	json_u64(json, "copy_count", sums->counts[WORK_COPY]);
	json_u64(json, "set_count", sums->counts[WORK_MEMSET]);
	json_u64(json, "gpu_time_ns", sums->gpu_ns);
	json_u64(json, "gpu_busy_ns", sums->exclusive_ns);
	json_u64(json, "gpu_idle_ns", idle_ns);
	put_collectives(json, &sums->collectives);
	put_idle(json, sums->idle_ns);
	json_i64(json, "first_start_ns", (int64_t)(sums->start_ns - (uint64_t)process->origin_ns));
	json_i64(json, "last_end_ns", (int64_t)(sums->end_ns - (uint64_t)process->origin_ns));
	json_end_object(json);
}

static void put_processes(struct json *json, const struct processes *s)
{
	json_begin_array(json, "processes");
	for (size_t i = 0; i < s->count; i++) {
		const struct process_sums *process = &s->list[i];

		json_begin_object(json, NULL);
		json_string(json, "label", process->label);
		json_string(json, "name", process->name);
		json_string(json, "title", process->title);
		json_string(json, "command", process->command);
		put_rank_numbers_json(json, process->log);
		json_string(json, "host", process->log->host);
		json_u64(json, "pid", process->log->header.pid);
		json_string(json, "identity", process->log->identity);
		json_string(json, "pid_namespace", process->log->pid_namespace);
		json_string(json, "boot", process->log->boot);
		json_string(json, "log", input_shown(process->log));
		json_u64(json, "start_realtime_ns", process->log->header.start_realtime_ns);
		json_begin_array(json, "devices");
		for (size_t d = 0; d < process->device_count; d++)
			put_device(json, process, &process->devices[d]);
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_totals(struct json *json, const struct run *run)
{
	json_begin_object(json, "totals");
	json_u64(json, "launch_count", run->sums->events.calls.launch_count);
	json_u64(json, "launch_failed_count", run->sums->events.calls.launch_failed_count);
	json_u64(json, "launch_captured_count", run->sums->events.calls.launch_captured_count);
	json_u64(json, "launch_of_kernelless_graph_count",
		 run->sums->events.calls.launch_kernelless_count);
	json_u64(json, "launch_without_work_count", run->sums->events.calls.launch_unmatched_count);
	json_u64(json, "kernel_missing_count", run->sums->events.calls.kernel_missing_count);
	json_u64(json, "transfer_call_count", run->sums->events.calls.transfer_call_count);
	json_u64(json, "transfer_call_without_work_count",
		 run->sums->events.calls.transfer_unmatched_count);
	json_u64(json, "kernel_count", run->sums->events.work.work_count[WORK_KERNEL]);
	json_u64(json, "copy_count", run->sums->events.work.work_count[WORK_COPY]);
	json_u64(json, "set_count", run->sums->events.work.work_count[WORK_MEMSET]);
	json_u64(json, "graph_work_count", run->sums->events.work.graph_work_count);
	json_u64(json, "whole_graph_count", run->sums->events.work.whole_graph_count);
	json_u64(json, "whole_graph_time_ns", run->sums->events.work.whole_graph_ns);
	json_u64(json, "pause_count", run->sums->recording.pause_count);
	json_u64(json, "paused_ns", run->sums->recording.paused_ns);
	json_u64(json, "gpu_time_ns", run->sums->events.work.gpu_ns);
	json_u64(json, "gpu_exclusive_ns", table_sum(&run->paths, WEIGHT_GPU_EXCLUSIVE));
	json_u64(json, "gpu_idle_ns", table_sum(&run->paths, WEIGHT_GPU_IDLE));
	put_collectives(json, &run->sums->collectives);
	json_u64(json, "cpu_wait_ns", table_sum(&run->paths, WEIGHT_CPU_WAIT));
	json_u64(json, "alloc_bytes", table_sum(&run->paths, WEIGHT_ALLOC_BYTES));
	json_u64(json, "leaked_bytes", table_sum(&run->paths, WEIGHT_LEAKED_BYTES));
	json_end_object(json);
}

static void put_idle_classes(struct json *json, const struct processes *s)
{
	uint64_t idle_ns[IDLE_CLASSES] = {0};

	for (size_t i = 0; i < s->count; i++)
		for (size_t d = 0; d < s->list[i].device_count; d++)
			for (int class = 0; class < IDLE_CLASSES; class ++)
				idle_ns[class] += s->list[i].devices[d].idle_ns[class];
	put_idle(json, idle_ns);
}

/* GPU time of PyTorch's backward pass. */
static void put_backward(struct json *json, const struct run *run)
{
	const uint64_t *ns = run->sums->code.backward_gpu_ns;

	json_begin_object(json, "backward");
	json_u64(json, "gpu_time_ns", ns[JOIN_EXACT] + ns[JOIN_INFERRED] + ns[JOIN_NONE]);
	json_u64(json, "exact_gpu_time_ns", ns[JOIN_EXACT]);
	json_u64(json, "inferred_gpu_time_ns", ns[JOIN_INFERRED]);
	json_u64(json, "none_gpu_time_ns", ns[JOIN_NONE]);
	json_end_object(json);
}

static void put_selection(struct json *json, const struct run *run)
{
	char text[WANTED_BYTES];

	wanted_describe(&run->settings->wanted, text, sizeof(text));
	json_string(json, "selection", text);
}

/* SQL that gives the numbers from the database of --sqlite. */
static void put_queries(struct json *json)
{
	json_begin_object(json, "queries");
	for (int q = 0; q < QUERIES; q++)
		json_string(json, summary_query((enum query)q)->name,
			    summary_query((enum query)q)->sql);
	json_end_object(json);
}

int summary_json_put(struct json *json, const char *key, const struct run *run, bool with_paths)
{
	const struct processes *s = run_analysis(run, &analysis_processes);
	/* The page makes those of paths from its tree. */
	enum { PATH_TABLES = 2 };
	static const struct table_def *const tables[] = {&table_kernels,
							 &table_ranges_def,
							 &table_transfers,
							 &table_memory,
							 &table_calls,
							 &table_failures,
							 NULL};
	int error = 0;

	json_begin_object(json, key);
	json_string(json, "format", "xtrace-summary");
	json_string(json, "schema", "summary.schema.json");
	json_u64(json, "version", SUMMARY_VERSION);
	json_string(json, "generator", "xtrace " XTRACE_VERSION);
	json_bool(json, "simulated_gpu", run->sums->recording.has_simulated_gpu);
	if (run->selection)
		put_selection(json, run);
	error = put_headline_json(json, run);
	if (!error)
		error = put_cpu_json(json, run);
	put_queries(json);
	put_totals(json, run);
	put_idle_classes(json, s);
	put_processes(json, s);
	put_ranks_json(json, run);
	if (!error)
		error = put_collectives_json(json, run);
	if (!error)
		error = put_mpi_json(json, run);
	if (!error)
		error = put_findings_json(json, run);
	put_backward(json, run);
	json_begin_object(json, "own_code");
	json_u64(json, "gpu_time_ns", run->sums->code.user_code_gpu_ns);
	json_end_object(json);
	json_begin_object(json, "compiled");
	json_u64(json, "unknown_gpu_time_ns", run->sums->code.compiled_unknown_gpu_ns);
	json_end_object(json);
	summary_json_trust(json, run);
	for (size_t t = 0; tables[t] && !error; t++)
		if (with_paths || t >= PATH_TABLES)
			error = table_put_json(json, run, tables[t]);
	if (with_paths && !error)
		error = summary_json_weights(json, run);
	json_end_object(json);
	return error;
}

static void end(struct sink *sink, const struct run *run)
{
	struct json json = {.out = &sink->out,
			    .lines_depth = SUMMARY_LINES_DEPTH,
			    .rows_max = run->settings->top_count};

	summary_json_put(&json, NULL, run, true);
}

const struct exporter exporter_summary = {
	.name = "summary",
	.what = "Write all tables in full as one JSON document",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_TOP | USES_FINDINGS | USES_CPU_LOGS,
	.analyses = all_analyses,
	.end = end,
};
