/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_collectives.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/tables/table_writers.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/wait_cause.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"

#define PROBLEMS_SHOWN 3
#define FREE_WAITS     2    /* waits that cost less than 1/2 of their length */
#define NOTABLE_WAITS  0.05 /* of the time of all ranks */

static bool has_collectives(const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;

	return run->needs.ranks && (report->communicators.count || report->unfinished.count);
}

/* Frees the text. */
static void put_clean_note(struct output *out, char *text)
{
	char *clean = text_clean_copy(text);

	if (clean[0])
		put_note(out, clean);
	free(text);
	free(clean);
}

/* Says why ranks of a distributed job are not compared. */
static void put_not_compared(struct output *out, const struct run *run)
{
	uint32_t world_size = run->inputs->logs[0].world_size;
	bool is_alone = run->inputs->count == 1 && world_size != RANK_UNKNOWN && world_size > 1;
	bool is_part = run->inputs->count > 1 && wanted_is_part(&run->settings->wanted);

	if (!run->sums->collectives.count || (!is_alone && !is_part))
		return;
	put_title(out, "Collectives", "");
	put_clean_note(out, is_alone
				    ? xt_asprintf("Ranks are not compared: this is the log of one "
						  "of %u ranks.",
						  world_size)
				    : xt_strdup("Ranks are not compared, as only a part of the run "
						"is selected."));
}

static void put_unfinished_note(struct output *out, const struct run *run,
				const struct unfinished_collective *row)
{
	const struct communicator *communicator =
		&run->compared->report.communicators.list[row->communicator];
	char *what = collective_text(run, communicator, row->number, row->operation);
	char *absent = absent_members_text(run, communicator, row->number);

	put_clean_note(out, xt_asprintf("Not finished either: %s. Not there: %s.", what,
					absent[0] ? absent : "ranks without a log"));
	free(what);
	free(absent);
}

static void put_mismatch_note(struct output *out, const struct run *run,
			      const struct collective_mismatch *row)
{
	const struct communicator *communicator =
		&run->compared->report.communicators.list[row->communicator];
	const struct arrivals *arrivals = &communicator->arrivals[row->number];
	char *what = collective_text(run, communicator, row->number, arrivals->operation);

	put_clean_note(out, xt_asprintf("%s differs between ranks in its %s: such ranks hang or "
					"exchange wrong data.",
					what, row->what == MISMATCH_BYTES ? "size" : "operation"));
	free(what);
}

static void put_rest(struct output *out, size_t count, const char *what)
{
	if (count > PROBLEMS_SHOWN)
		put_clean_note(out, xt_asprintf("And %zu more %s.", count - PROBLEMS_SHOWN, what));
}

static void put_problems(struct output *out, const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;

	put_clean_note(out, incomplete_text(run));
	/* The verdict is about the first. */
	for (size_t u = 1; u < report->unfinished.count && u < PROBLEMS_SHOWN; u++)
		put_unfinished_note(out, run, &report->unfinished.list[u]);
	for (size_t m = 0; m < report->mismatches.count && m < PROBLEMS_SHOWN; m++)
		put_mismatch_note(out, run, &report->mismatches.list[m]);
	put_rest(out, report->unfinished.count, "collectives that never finished");
	put_rest(out, report->mismatches.count, "collectives that differ");
	for (size_t d = 0; d < report->communicators.duplicates.count; d++) {
		const struct duplicate_rank *row = &report->communicators.duplicates.list[d];

		put_clean_note(out, xt_asprintf("%s is left out: %s has the same rank.",
						run->labels[row->log], run->labels[row->other]));
	}
}

void summary_put_collectives(struct sink *sink, const struct run *run)
{
	static const struct table_def *const tables[] = {&text_sorted_communicators,
							 &text_large_causes, &table_spread};
	const struct collectives_report *report = &run->compared->report;
	struct output *out = &sink->out;

	if (!has_collectives(run)) {
		put_not_compared(out, run);
		return;
	}
	put_title(out, "Collectives", "");
	put_clean_note(out, verdict_text(run));
	put_problems(out, run);
	for (size_t h = 1; h < report->clocks.count; h++)
		put_clean_note(out, rank_clock_text(run, h));
	if (report->job_count > 1)
		put_clean_note(out, jobs_text(run));
	if (report->counts.by_order_count)
		put_note(out,
			 "Some collectives do not say their communicator. They are compared by "
			 "the order on their stream.");
	if (report->times.exposed_ns > FREE_WAITS * report->times.cost_ns &&
	    (double)report->times.exposed_ns > NOTABLE_WAITS * report->times.ranks_ns)
		put_note(out, "Most of the waits cost nothing: without them, the GPU would have "
			      "waited for its CPU instead.");
	table_put_text(sink, run, &table_rank_waits, false);
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		table_put_text(sink, run, tables[t], true);
}

void summary_put_mpi(struct sink *sink, const struct run *run)
{
	const struct mpi_waits *waits = &run->compared->report.mpi;

	if (!waits->rank_count)
		return;
	put_title(&sink->out, "Collectives of MPI", "");
	put_clean_note(&sink->out, mpi_waits_text(run, waits));
	table_put_text(sink, run, &table_mpi, false);
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
	char *text = verdict_text(run), *where = wait_cause_where(&run->paths, verdict->node);
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
	free(where);
	free(text);
}

void put_collectives_json(struct json *json, const struct run *run)
{
	static const struct table_def *const tables[] = {
		&table_rank_waits,  &table_communicators, &table_collective_groups,
		&table_wait_causes, &table_spread,	  &table_clocks,
		&table_mismatches,  &table_unfinished,	  &table_duplicates,
	};
	const struct collectives_report *report = &run->compared->report;
	char *missing;

	if (!has_collectives(run))
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

void put_mpi_json(struct json *json, const struct run *run)
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
