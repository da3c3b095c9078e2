/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_collectives.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"
#include "merge/export/summary/summary_ranks.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/tables/table_writers.h"
#include "merge/findings/detection.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/ranks/rank_lists.h"
#include "merge/ranks/wait_cause.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"

#define PROBLEMS_SHOWN 3
#define FREE_WAITS     2    /* waits that cost less than 1/2 of their length */
#define NOTABLE_WAITS  0.05 /* of the time of all ranks */

static bool has_collectives(const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;

	return run->needs.ranks && (report->communicators.count || report->unfinished_count);
}

static int put_clean_note(struct output *out, char *text)
{
	char *clean = text ? text_clean_copy(text) : NULL;

	if (clean)
		put_note(out, clean);
	free(text);
	free(clean);
	return clean ? 0 : -ENOMEM;
}

/* Says why ranks of a distributed job are not compared. */
static int put_not_compared(struct output *out, const struct run *run)
{
	uint32_t world_size = run->inputs->logs[0].world_size;
	bool is_alone = run->inputs->count == 1 && world_size != RANK_UNKNOWN && world_size > 1;
	char *text;
	int length = 0;

	if (!run->sums->collectives.count)
		return 0;
	if (is_alone)
		length = asprintf(&text,
				  "Ranks are not compared: this is the log of one of %u ranks.",
				  world_size);
	else if (run->inputs->count > 1 && wanted_is_part(&run->settings->wanted))
		length = asprintf(&text, "Ranks are not compared, as only a part of the run is "
					 "selected.");
	if (length <= 0)
		return length < 0 ? -ENOMEM : 0;
	put_title(out, "Collectives", "");
	return put_clean_note(out, text);
}

static int put_unfinished_note(struct output *out, const struct run *run,
			       const struct unfinished_collective *row)
{
	const struct communicator *communicator =
		&run->compared->report.communicators.list[row->communicator];
	char *what = collective_text(run, communicator, row->number, row->operation);
	char *absent = absent_members_text(run, communicator, row->number), *text;
	int length = what && absent ? asprintf(&text, "Not finished either: %s. Not there: %s.",
					       what, absent[0] ? absent : "ranks without a log")
				    : -1;

	free(what);
	free(absent);
	return put_clean_note(out, length < 0 ? NULL : text);
}

static int put_mismatch_note(struct output *out, const struct run *run,
			     const struct collective_mismatch *row)
{
	const struct communicator *communicator =
		&run->compared->report.communicators.list[row->communicator];
	const struct arrivals *arrivals = &communicator->arrivals[row->number];
	char *what = collective_text(run, communicator, row->number, arrivals->operation), *text;
	int length =
		what ? asprintf(&text,
				"%s differs between ranks in its %s: such ranks hang or exchange "
				"wrong data.",
				what, row->what == MISMATCH_BYTES ? "size" : "operation")
		     : -1;

	free(what);
	return put_clean_note(out, length < 0 ? NULL : text);
}

static int put_rest(struct output *out, size_t count, const char *what)
{
	char *text;

	if (count <= PROBLEMS_SHOWN)
		return 0;
	return put_clean_note(
		out, asprintf(&text, "And %zu more %s.", count - PROBLEMS_SHOWN, what) < 0 ? NULL
											   : text);
}

static int put_problems(struct output *out, const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	char *incomplete = incomplete_text(run);
	int error = 0;

	if (incomplete && !incomplete[0])
		free(incomplete);
	else
		error = put_clean_note(out, incomplete);

	/* The verdict is about the first. */
	for (size_t u = 1; u < report->unfinished_count && u < PROBLEMS_SHOWN && !error; u++)
		error = put_unfinished_note(out, run, &report->unfinished[u]);
	for (size_t m = 0; m < report->mismatch_count && m < PROBLEMS_SHOWN && !error; m++)
		error = put_mismatch_note(out, run, &report->mismatches[m]);
	if (!error)
		error = put_rest(out, report->unfinished_count, "collectives that never finished");
	if (!error)
		error = put_rest(out, report->mismatch_count, "collectives that differ");
	for (size_t d = 0; d < report->communicators.duplicate_count && !error; d++) {
		const struct duplicate_rank *row = &report->communicators.duplicates[d];
		char *text;
		int length = asprintf(&text, "%s is left out: %s has the same rank.",
				      run->labels[row->log], run->labels[row->other]);

		error = put_clean_note(out, length < 0 ? NULL : text);
	}
	return error;
}

int summary_put_collectives(struct sink *sink, const struct run *run)
{
	static const struct table_def *const tables[] = {&table_sorted_communicators,
							 &table_large_causes, &table_spread};
	const struct collectives_report *report = &run->compared->report;
	struct output *out = &sink->out;
	int error;

	if (!has_collectives(run))
		return put_not_compared(out, run);
	put_title(out, "Collectives", "");
	error = put_clean_note(out, verdict_text(run));
	if (!error)
		error = put_problems(out, run);
	for (size_t h = 1; h < report->clocks.count && !error; h++)
		error = put_clean_note(out, rank_clock_text(run, h));
	if (!error && report->job_count > 1)
		error = put_clean_note(out, jobs_text(run));
	if (!error && report->by_order_count)
		put_note(out,
			 "Some collectives do not say their communicator. They are compared by "
			 "the order on their stream.");
	if (report->exposed_ns > FREE_WAITS * report->cost_ns &&
	    (double)report->exposed_ns > NOTABLE_WAITS * report->ranks_ns)
		put_note(out, "Most of the waits cost nothing: without them, the GPU would have "
			      "waited for its CPU instead.");
	if (!error)
		error = table_put_text(sink, run, &table_rank_waits, false);
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]) && !error; t++)
		error = table_put_text(sink, run, tables[t], true);
	return error;
}

static void put_communicator(struct json *json, const struct communicator *communicator)
{
	char name[32];

	communicator_name(communicator, name, sizeof(name));
	json_string(json, "communicator", name);
}

static int put_verdict(struct json *json, const struct run *run)
{
	const struct rank_verdict *verdict = &run->compared->report.verdict;
	char *text = verdict_text(run), *where = wait_cause_where(&run->paths, verdict->node);
	bool has_absent = verdict->kind == VERDICT_HANG && verdict->log != SIZE_MAX;

	if (!text || !where) {
		free(text);
		free(where);
		return -ENOMEM;
	}
	json_begin_object(json, "verdict");
	json_string(json, "kind", verdict_kind_name(verdict->kind));
	json_u64(json, "cost_ns", verdict->cost_ns);
	json_rounded(json, "share", verdict->share, 4);
	if (verdict->kind == VERDICT_RANK || has_absent) {
		json_string(json, "process", run->labels[verdict->log]);
		put_rank_numbers_json(json, &run->inputs->logs[verdict->log]);
	}
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
	return 0;
}

static int put_missing_json(struct json *json, const struct run *run)
{
	char *ranks = missing_ranks_text(run);

	if (ranks)
		json_string(json, "missing_ranks", ranks);
	free(ranks);
	return ranks ? 0 : -ENOMEM;
}

int put_collectives_json(struct json *json, const struct run *run)
{
	static const struct table_def *const tables[] = {
		&table_rank_waits,  &table_communicators, &table_collective_groups,
		&table_wait_causes, &table_spread,	  &table_clocks,
		&table_mismatches,  &table_unfinished,	  &table_duplicates,
	};
	const struct collectives_report *report = &run->compared->report;
	int error;

	if (!has_collectives(run))
		return 0;
	json_begin_object(json, "collectives");
	json_u64(json, "count", report->count);
	json_u64(json, "matched", report->matched_count);
	json_u64(json, "by_order", report->by_order_count);
	json_u64(json, "partial", report->partial_count);
	json_u64(json, "wait_ns", report->wait_ns);
	json_u64(json, "exposed_wait_ns", report->exposed_ns);
	json_u64(json, "cost_ns", report->cost_ns);
	json_u64(json, "job_ns", (uint64_t)report->job_ns);
	json_u64(json, "job_count", report->job_count);
	error = put_verdict(json, run);
	if (!error)
		error = put_missing_json(json, run);
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]) && !error; t++)
		error = table_put_json(json, run, tables[t]);
	json_end_object(json);
	return error;
}
