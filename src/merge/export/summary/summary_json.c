/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary JSON. docs/SUMMARY.md documents each name and unit.
 */
#include "merge/export/summary/summary_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "merge/export/summary/summary_headline.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/path_tables.h"
#include "merge/sums/trust.h"
#include "merge/export/formats.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/wait_cause.h"
#include "merge/sums/cpu_logs.h"
#include "merge/sums/run.h"

#define PATH_ID_BYTES 17

static void put_totals(struct json *json, const struct run *run)
{
	const struct call_counts *calls = &run->sums->events.calls;
	const struct work_counts *work = &run->sums->events.work;
	const struct collective_sums *collectives = &run->sums->collectives;

	json_begin_object(json, "totals");
	json_u64(json, "launch_count", calls->launch_count);
	json_u64(json, "launch_failed_count", calls->launch_failed_count);
	json_u64(json, "launch_captured_count", calls->launch_captured_count);
	json_u64(json, "launch_of_kernelless_graph_count", calls->launch_kernelless_count);
	json_u64(json, "launch_without_work_count", calls->launch_unmatched_count);
	json_u64(json, "kernel_missing_count", calls->kernel_missing_count);
	json_u64(json, "transfer_call_count", calls->transfer_call_count);
	json_u64(json, "transfer_call_without_work_count", calls->transfer_unmatched_count);
	json_u64(json, "kernel_count", work->work_count[WORK_KERNEL]);
	json_u64(json, "copy_count", work->work_count[WORK_COPY]);
	json_u64(json, "set_count", work->work_count[WORK_MEMSET]);
	json_u64(json, "graph_work_count", work->graph_work_count);
	json_u64(json, "whole_graph_count", work->whole_graph_count);
	json_u64(json, "whole_graph_time_ns", work->whole_graph_ns);
	json_u64(json, "pause_count", run->sums->recording.pause_count);
	json_u64(json, "paused_ns", run->sums->recording.paused_ns);
	json_u64(json, "gpu_time_ns", work->gpu_ns);
	json_u64(json, "gpu_exclusive_ns", table_sum(&run->paths, WEIGHT_GPU_EXCLUSIVE));
	json_u64(json, "gpu_idle_ns", table_sum(&run->paths, WEIGHT_GPU_IDLE));
	json_u64(json, "collective_count", collectives->count);
	json_u64(json, "collective_time_ns", collectives->gpu_ns);
	json_u64(json, "collective_alone_ns", collectives->alone_ns);
	json_u64(json, "cpu_wait_ns", table_sum(&run->paths, WEIGHT_CPU_WAIT));
	json_u64(json, "alloc_bytes", table_sum(&run->paths, WEIGHT_ALLOC_BYTES));
	json_u64(json, "leaked_bytes", table_sum(&run->paths, WEIGHT_LEAKED_BYTES));
	json_end_object(json);
}

static void put_cpu_json(struct json *json, const struct run *run)
{
	const struct cpu_facts *facts = &run->cpu->facts;

	if (!facts->process_count)
		return;
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
	table_put_json(json, run, &table_cpu_idle);
	json_end_object(json);
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

bool summary_has_collectives(const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;

	return run->needs.ranks && (report->communicators.count || report->unfinished.count);
}

static void put_member(struct json *json, const char *key, uint32_t number)
{
	if (number != RANK_UNKNOWN)
		json_u64(json, key, number);
}

static void put_process(struct json *json, const struct run *run, size_t log)
{
	const struct input *input = &run->inputs->logs[log];

	json_string(json, "process", run->labels[log]);
	put_member(json, "rank", input->rank);
	put_member(json, "local_rank", input->local_rank);
	put_member(json, "world_size", input->world_size);
	if (input->run[0])
		json_string(json, "run_id", input->run);
	if (input->batch_job[0])
		json_string(json, "batch_job_id", input->batch_job);
}

static void put_communicator(struct json *json, const struct communicator *communicator)
{
	char name[32];

	communicator_name(communicator, name, sizeof(name));
	json_string(json, "communicator", name);
}

static void put_verdict(struct json *json, const struct run *run)
{
	const struct rank_verdict *verdict = &run->compared->report.verdict;
	char *text = verdict_text(run, NULL), *where = wait_cause_where(&run->paths, verdict->node);
	bool has_absent = verdict->kind == VERDICT_HANG && verdict->log != SIZE_MAX;

	json_begin_object(json, "verdict");
	json_string(json, "kind", verdict_kind_name(verdict->kind));
	json_u64(json, "cost_ns", verdict->cost_ns);
	json_rounded(json, "share", verdict->share, 4);
	if (verdict->kind == VERDICT_RANK || has_absent)
		put_process(json, run, verdict->log);
	if (verdict->kind == VERDICT_LINK)
		put_communicator(json,
				 &run->compared->report.communicators.list[verdict->communicator]);
	if (((verdict->kind == VERDICT_RANK || verdict->kind == VERDICT_MOVING) &&
	     verdict_has_place(verdict)) ||
	    (has_absent && where[0]))
		json_string(json, "where", where);
	json_string(json, "text", text);
	json_end_object(json);
	free_all(where, text);
}

static void put_collectives_json(struct json *json, const struct run *run)
{
	static const struct table_def *const tables[] = {
		&table_rank_waits,  &table_communicators, &table_collective_groups,
		&table_wait_causes, &table_spread,	  &table_clocks,
		&table_mismatches,  &table_unfinished,	  &table_duplicates,
	};
	const struct collectives_report *report = &run->compared->report;
	char *notes[COLLECTIVES_NOTES_MAX], *missing;
	size_t note_count;

	if (!summary_has_collectives(run))
		return;
	json_begin_object(json, "collectives");
	json_u64(json, "count", report->counts.all_count);
	json_u64(json, "matched", report->counts.matched_count);
	json_u64(json, "by_order", report->counts.by_order_count);
	json_u64(json, "partial", report->counts.partial_count);
	json_u64(json, "wait_ns", report->times.wait_ns);
	json_u64(json, "exposed_wait_ns", report->times.exposed_ns);
	json_u64(json, "cost_ns", report->times.cost_ns);
	json_u64(json, "job_ns", (uint64_t)report->times.job_ns);
	json_u64(json, "job_count", report->job_count);
	put_verdict(json, run);
	missing = missing_ranks_text(run);
	json_string(json, "missing_ranks", missing);
	free(missing);
	json_begin_array(json, "notes");
	note_count = collectives_notes(run, notes);
	for (size_t n = 0; n < note_count; n++) {
		json_string(json, NULL, notes[n]);
		free(notes[n]);
	}
	json_end_array(json);
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		table_put_json(json, run, tables[t]);
	json_end_object(json);
}

static void put_mpi_verdict(struct json *json, const struct run *run, const struct mpi_waits *waits)
{
	char *text = mpi_waits_text(run, waits);

	json_begin_object(json, "verdict");
	json_string(json, "kind", waits->late != SIZE_MAX ? "rank" : "unknown");
	if (waits->late != SIZE_MAX) {
		char *where = wait_cause_where(&run->paths, waits->node);

		json_string(json, "process", run->labels[waits->ranks[waits->late].log]);
		json_u64(json, "cost_ns", waits->cost_ns);
		json_string(json, "where", where);
		json_u64(json, "where_ns", waits->node_ns);
		free(where);
	}
	json_string(json, "text", text);
	json_end_object(json);
	free(text);
}

static void put_mpi_json(struct json *json, const struct run *run)
{
	const struct mpi_waits *waits = &run->compared->report.mpi;

	if (!waits->rank_count)
		return;
	json_begin_object(json, "mpi");
	json_u64(json, "period_ns", waits->period_ns);
	json_u64(json, "window_ns", (uint64_t)(waits->until_ns - waits->from_ns));
	put_mpi_verdict(json, run, waits);
	table_put_json(json, run, &table_mpi);
	json_end_object(json);
}

/* SQL that gives the numbers from the database of --sqlite. */
static void put_queries(struct json *json)
{
	static const char *const queries[][2] = {
		{"gpu_busy", "SELECT device, span_ns, gpu_busy_ns FROM device_busy;"},
		{"gpu_idle_by_class",
		 "SELECT class, gpu_idle_ns FROM idle_by_class ORDER BY gpu_idle_ns DESC;"},
		{"longest_gap", "SELECT duration_ns, start_ns, cause, file, line FROM gaps "
				"ORDER BY duration_ns DESC LIMIT 1;"},
		{"gpu_time_by_line", "SELECT sum(gpu_time_ns) AS gpu_time_ns, file, line "
				     "FROM stacks WHERE file IS NOT NULL GROUP BY file, line "
				     "ORDER BY gpu_time_ns DESC LIMIT 8;"},
		{"gpu_time_by_frame",
		 "SELECT sum(p.gpu_time_ns) AS gpu_time_ns, n.text AS frame FROM path p JOIN name "
		 "n ON n.id = p.own_name_id WHERE p.gpu_time_ns > 0 GROUP BY n.id "
		 "ORDER BY 1 DESC LIMIT 8;"},
		{"kernels", "SELECT total_ns, percent, name FROM kernels LIMIT 8;"},
	};

	json_begin_object(json, "queries");
	for (size_t q = 0; q < sizeof(queries) / sizeof(*queries); q++)
		json_string(json, queries[q][0], queries[q][1]);
	json_end_object(json);
}

/* Writes the id of a path, which depends on its text only: FNV-1a of 64 bits, in hexadecimal. */
static void format_path_id(char out[PATH_ID_BYTES], const struct paths *paths, uint32_t node)
{
	uint64_t hash = 0xcbf29ce484222325;
	size_t length;
	char *text = paths_text(paths, node, &length);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3;
	snprintf(out, PATH_ID_BYTES, "%016" PRIx64, hash);
	free(text);
}

/* Marks the paths of the rows in is_used. */
static void put_weight(struct json *json, const struct run *run, enum weight weight,
		       uint8_t *is_used)
{
	const struct weight_spec *spec = &weight_specs[weight];
	char id[PATH_ID_BYTES];
	struct table table;

	table_paths(&table, &run->paths, weight);
	json_begin_object(json, spec->name);
	json_string(json, "unit", weight_unit(weight));
	json_u64(json, "total", table_sum(&run->paths, weight));
	json_begin_object(json, "paths");
	json_u64(json, "row_count", table.count);
	json_begin_array(json, "rows");
	json->lines_depth = json->depth;
	for (size_t r = 0; r < table_rows_shown(json, table.count); r++) {
		format_path_id(id, &run->paths, table.rows[r].id);
		is_used[table.rows[r].id] = true;
		json_begin_object(json, NULL);
		json_u64(json, "value", table.rows[r].value);
		json_string(json, "path", id);
		json_end_object(json);
	}
	json_end_array(json);
	json->lines_depth = SUMMARY_LINES_DEPTH;
	json_end_object(json);
	json_end_object(json);
	table_free(&table);
}

/* The weights, and the frames of each path in them by the path's id. */
static void put_weights(struct json *json, const struct run *run)
{
	uint8_t *is_used = xt_calloc(run->paths.node_count, sizeof(*is_used));

	json_begin_object(json, "weights");
	for (int w = 0; w < WEIGHTS; w++)
		if (run_listed_weights(run) >> w & 1)
			put_weight(json, run, (enum weight)w, is_used);
	json_end_object(json);
	json_begin_object(json, "paths");
	for (uint32_t n = 0; n < run->paths.node_count; n++) {
		const struct cell path = cell_path(&run->paths, n);
		char id[PATH_ID_BYTES];

		if (!is_used[n])
			continue;
		format_path_id(id, &run->paths, n);
		table_put_json_path(json, id, &path);
	}
	json_end_object(json);
	free(is_used);
}

static void put_trust(struct json *json, const struct run *run)
{
	const struct trust *trust = run->trust;

	json_begin_object(json, "trust");
	json_string(json, "word", trust_level_name(trust->level));
	json_strings(json, "reasons", (const char *const *)trust->reasons, trust->reason_count);
	json_strings(json, "lines", (const char *const *)trust->lines, TRUST_LINES);
	json_bool(json, "complete", run->report->status == STATUS_OK);
	table_put_json(json, run, &table_accounts);
	json_u64(json, "attributed_gpu_time_ns", run->sums->events.work.attributed_gpu_ns);
	table_put_json(json, run, &table_losses);
	table_put_json(json, run, &table_doubts);
	table_put_json(json, run, &table_nameless);
	table_put_json(json, run, &table_warnings);
	json_end_object(json);
}

/* Whether the document has the table in a certain place. */
static bool has_place(const struct table_def *def, const struct table_def *const *tables)
{
	while (*tables && *tables != def)
		tables++;
	return *tables || def == &table_by_process || def == &table_findings;
}

void summary_json_put(struct json *json, const char *key, const struct run *run, bool with_paths)
{
	/* The page makes those of paths from its tree. */
	enum { PATH_TABLES = 2 };
	static const struct table_def *const tables[] = {&table_kernels,
							 &table_ranges_def,
							 &table_transfers,
							 &table_memory,
							 &table_calls,
							 &table_failures,
							 NULL};

	json_begin_object(json, key);
	json_string(json, "format", "xtrace-summary");
	json_string(json, "schema", "summary.schema.json");
	json_u64(json, "version", SUMMARY_VERSION);
	json_string(json, "generator", "xtrace " XTRACE_VERSION);
	json_bool(json, "simulated_gpu", run->sums->recording.has_simulated_gpu);
	if (run->selection)
		put_selection(json, run);
	put_headline_json(json, run);
	put_cpu_json(json, run);
	put_queries(json);
	put_totals(json, run);
	table_put_json(json, run, &table_idle);
	table_put_json(json, run, &table_processes);
	if (run->found->ranks.count > 1)
		table_put_json(json, run, &table_by_process);
	put_collectives_json(json, run);
	put_mpi_json(json, run);
	table_put_json(json, run, &table_findings);
	put_backward(json, run);
	json_begin_object(json, "own_code");
	json_u64(json, "gpu_time_ns", run->sums->code.user_code_gpu_ns);
	json_end_object(json);
	json_begin_object(json, "compiled");
	json_u64(json, "unknown_gpu_time_ns", run->sums->code.compiled_unknown_gpu_ns);
	json_end_object(json);
	put_trust(json, run);
	for (size_t t = 0; tables[t]; t++)
		if (with_paths || t >= PATH_TABLES)
			table_put_json(json, run, tables[t]);
	for (size_t t = 0; table_defs[t]; t++)
		if (table_defs[t]->json.form == FORM_TABLE && !has_place(table_defs[t], tables))
			table_put_json(json, run, table_defs[t]);
	if (with_paths)
		put_weights(json, run);
	json_end_object(json);
}

static void summary_json_end(struct sink *sink, const struct run *run)
{
	struct json json = {.out = &sink->out,
			    .lines_depth = SUMMARY_LINES_DEPTH,
			    .rows_max = run->settings->tables.top_count};

	summary_json_put(&json, NULL, run, true);
}

const struct exporter exporter_summary = {
	.name = "summary",
	.what = "Write all tables in full as one JSON document",
	.uses = USES_PATHS | USES_ALL_WEIGHTS | USES_TOP | USES_FINDINGS | USES_CPU_LOGS,
	.analyses = all_analyses,
	.end = summary_json_end,
};
