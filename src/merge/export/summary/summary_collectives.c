/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/summary/summary_collectives.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"
#include "merge/export/summary/summary_communicators.h"
#include "merge/export/summary/summary_ranks.h"
#include "merge/export/summary/summary_json_tables.h"
#include "merge/export/summary/summary_spread.h"
#include "merge/export/summary/summary_text.h"
#include "merge/findings/detection.h"
#include "merge/ranks/collectives_words.h"
#include "merge/ranks/rank_lists.h"
#include "merge/ranks/wait_cause.h"

static const struct column rank_columns[] = {
	{"computes", 10, 0, false}, {"transfers", 9, 60, false},    {"waits", 8, 0, false},
	{"idle", 8, 60, false},	    {"costs others", 12, 0, false}, {"times last", 10, 80, false},
};

#define RANK_COLUMNS (sizeof(rank_columns) / sizeof(rank_columns[0]))

static const struct column cause_columns[] = {{"costs others", 12, 0, false},
					      {"share", 9, 0, false}};

#define CAUSE_COLUMNS	 (sizeof(cause_columns) / sizeof(cause_columns[0]))
#define CAUSES_MAX	 1000 /* in the JSON summary */
#define PROBLEMS_SHOWN	 3
#define FREE_WAITS	 2    /* waits that cost less than 1/2 of their length */
#define NOTABLE_WAITS	 0.05 /* of the time of all ranks */
#define CAUSE_SHARE_PART 100  /* smaller causes than 1/100 of all waits are left out */

static bool has_collectives(const struct run *run)
{
	const struct collectives_report *report = &run->collectives_report;

	return run->compares_ranks && (report->communicators.count || report->unfinished_count);
}

/* Factors of algorithm and bus bandwidth, as nccl-tests defines them, for n ranks. */
static double algorithm_bytes(const struct collective_group *group, double n)
{
	bool is_part = group->operation == COLLECTIVE_ALL_GATHER ||
		       group->operation == COLLECTIVE_REDUCE_SCATTER;

	return (double)group->bytes * (is_part ? n : 1);
}

static double bus_factor(const struct collective_group *group, double n)
{
	switch (group->operation) {
	case COLLECTIVE_ALL_REDUCE:
		return 2 * (n - 1) / n;
	case COLLECTIVE_ALL_GATHER:
	case COLLECTIVE_REDUCE_SCATTER:
	case COLLECTIVE_ALL_TO_ALL:
		return (n - 1) / n;
	default:
		return 1;
	}
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

static int put_rank_rows(struct sink *sink, const struct run *run)
{
	struct output *out = &sink->out;

	put_heads(out, rank_columns, RANK_COLUMNS, "process");
	for (size_t l = 0; l < run->inputs->count; l++) {
		const struct rank_waits *rank = &run->collectives_report.ranks[l];
		char texts[RANK_COLUMNS][TIME_BYTES], *label;
		size_t length;
		const char *figures[RANK_COLUMNS];

		if (!rank->collective_count || !run->labels[l])
			continue;
		strcpy(texts[0], format_percent_of(rank->compute_ns, rank->time_ns));
		strcpy(texts[1], format_percent_of(rank->communication_ns, rank->time_ns));
		strcpy(texts[2], format_percent_of(rank->exposed_ns, rank->time_ns));
		strcpy(texts[3], format_percent_of(rank->idle_ns, rank->time_ns));
		format_time(texts[4], rank->cost_ns);
		format_count(texts[5], rank->late_count);
		for (size_t c = 0; c < RANK_COLUMNS; c++)
			figures[c] = texts[c];
		label = text_clean_copy(run->labels[l]);
		if (!label)
			return -ENOMEM;
		put_figures(out, rank_columns, RANK_COLUMNS, figures);
		/* Only in one job does the rank alone identify a process. */
		length = strlen(label);
		if (out->columns && column_of(out) + text_columns(label, length) > out->columns &&
		    run->collectives_report.job_count < 2 && !strncmp(label, "rank ", 5) &&
		    strstr(label, " ("))
			length = (size_t)(strstr(label, " (") - label);
		put_cell(out, label, length);
		output_text(out, "\n", 1);
		free(label);
	}
	return 0;
}

static int put_cause(struct output *out, const struct run *run, const struct wait_cause *cause)
{
	char time[TIME_BYTES], share[SHARE_BYTES];
	const char *figures[CAUSE_COLUMNS] = {time, share};

	format_time(time, cause->cost_ns);
	format_share(share, cause->cost_ns, run->collectives_report.cost_ns);
	return summary_put_rank_path(out, cause_columns, CAUSE_COLUMNS, figures, run, cause->log,
				     cause->node);
}

static int put_causes(struct sink *sink, const struct run *run)
{
	const struct collectives_report *report = &run->collectives_report;
	size_t count = 0, shown;
	struct output *out = &sink->out;
	int error = 0;

	while (count < report->cause_count &&
	       report->causes[count].cost_ns > report->cost_ns / CAUSE_SHARE_PART)
		count++;
	shown = rows_to_show(count, sink->settings);
	if (!count || report->verdict.kind == VERDICT_NONE || report->verdict.kind == VERDICT_LINK)
		return 0;
	put_top_title(out, "Cost of late ranks, by cause", shown, count);
	put_heads(out, cause_columns, CAUSE_COLUMNS, "late rank, line and call path");
	for (size_t c = 0; c < shown && !error; c++)
		error = put_cause(out, run, &report->causes[c]);
	return error;
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
		&run->collectives_report.communicators.list[row->communicator];
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
		&run->collectives_report.communicators.list[row->communicator];
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
	const struct collectives_report *report = &run->collectives_report;
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
	const struct collectives_report *report = &run->collectives_report;
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
		error = put_rank_rows(sink, run);
	if (!error)
		error = summary_put_communicators(sink, run);
	if (!error)
		error = put_causes(sink, run);
	return error ? error : summary_put_spread(sink, run);
}

static void put_bins(struct json *json, const char *key, const float bins[RANK_BINS])
{
	json_begin_array(json, key);
	for (size_t b = 0; b < RANK_BINS; b++)
		json_u64(json, NULL, bins[b] < 1 ? (uint64_t)(100 * bins[b] + 0.5F) : 100);
	json_end_array(json);
}

static void put_ranks_array(struct json *json, const struct run *run)
{
	json_begin_array(json, "ranks");
	for (size_t l = 0; l < run->inputs->count; l++) {
		const struct rank_waits *rank = &run->collectives_report.ranks[l];

		if (!rank->collective_count || !run->labels[l])
			continue;
		json_begin_object(json, NULL);
		json_string(json, "process", run->labels[l]);
		put_rank_numbers_json(json, &run->inputs->logs[l]);
		json_u64(json, "time_ns", rank->time_ns);
		json_u64(json, "compute_ns", rank->compute_ns);
		json_u64(json, "communication_ns", rank->communication_ns);
		json_u64(json, "idle_ns", rank->idle_ns);
		json_u64(json, "wait_ns", rank->wait_ns);
		json_u64(json, "exposed_wait_ns", rank->exposed_ns);
		json_u64(json, "caused_ns", rank->caused_ns);
		json_u64(json, "cost_ns", rank->cost_ns);
		json_u64(json, "late_count", rank->late_count);
		json_u64(json, "transfer_ns", rank->transfer_ns);
		put_bins(json, "waiting_percent", rank->waiting);
		put_bins(json, "late_percent", rank->late);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_groups(struct json *json, const struct collectives_report *report)
{
	json_begin_array(json, "groups");
	for (size_t g = 0; g < report->groups.count; g++) {
		const struct collective_group *group = &report->groups.list[g];
		const struct communicator *communicator =
			&report->communicators.list[group->communicator];
		double n = (double)communicator->member_count;
		double bytes_per_second =
			group->transfer_ns
				? algorithm_bytes(group, n) / (double)group->transfer_ns * 1e9
				: 0;

		json_begin_object(json, NULL);
		json_string(json, "operation", collective_operation_names[group->operation]);
		put_communicator_json(json, communicator);
		json_u64(json, "ranks", communicator->member_count);
		json_u64(json, "bytes", group->bytes);
		json_u64(json, "count", group->count);
		json_u64(json, "wait_ns", group->wait_ns);
		json_u64(json, "transfer_ns", group->transfer_ns);
		json_u64(json, "slow_ns", group->slow_ns);
		if (group->bytes && group->transfer_ns) {
			json_u64(json, "algorithm_bytes_per_second", (uint64_t)bytes_per_second);
			json_u64(json, "bus_bytes_per_second",
				 (uint64_t)(bytes_per_second * bus_factor(group, n)));
		}
		json_end_object(json);
	}
	json_end_array(json);
}

static int put_causes_json(struct json *json, const struct run *run)
{
	const struct collectives_report *report = &run->collectives_report;
	size_t count = report->cause_count < CAUSES_MAX ? report->cause_count : CAUSES_MAX;
	int error = 0;

	json_begin_array(json, "causes");
	for (size_t c = 0; c < count && !error; c++) {
		const struct wait_cause *cause = &report->causes[c];
		char *where = wait_cause_where(&run->paths, cause->node);

		if (!where) {
			error = -ENOMEM;
			break;
		}
		json_begin_object(json, NULL);
		json_string(json, "process", run->labels[cause->log]);
		put_rank_numbers_json(json, &run->inputs->logs[cause->log]);
		json_u64(json, "wait_ns", cause->wait_ns);
		json_u64(json, "cost_ns", cause->cost_ns);
		json_string(json, "kind", wait_cause_kind(&run->paths, cause->node));
		json_string(json, "where", where);
		free(where);
		error = summary_json_path(json, "path", &run->paths, cause->node);
		json_end_object(json);
	}
	json_end_array(json);
	return error;
}

static void put_clocks(struct json *json, const struct run *run)
{
	const struct rank_clocks *clocks = &run->collectives_report.clocks;

	json_begin_array(json, "clocks");
	for (size_t h = 0; h < clocks->count; h++) {
		const struct rank_clock *clock = &clocks->list[h];

		json_begin_object(json, NULL);
		json_string(json, "host", clock->log->host);
		json_bool(json, "is_aligned", rank_clock_is_known(clocks, h));
		json_string(json, "reference", clocks->list[clock->reference].log->host);
		json_i64(json, "at_realtime_ns", run->inputs->origin_ns + (int64_t)clock->at_ns);
		json_i64(json, "offset_ns", -(int64_t)clock->offset_ns);
		json_double(json, "drift_ppm", -clock->drift * 1e6);
		if (rank_clock_is_known(clocks, h))
			json_u64(json, "error_ns", (uint64_t)clock->error_ns + 1);
		json_u64(json, "bound_count", clock->bound_count);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_labels(struct json *json, const char *key, const struct run *run,
		       const struct communicator *communicator, size_t number, bool is_reached)
{
	json_begin_array(json, key);
	for (size_t m = 0; m < communicator->member_count; m++)
		if ((comm_member_reach(communicator, m) > number) == is_reached)
			json_string(json, NULL, run->labels[communicator->members[m].log->log]);
	json_end_array(json);
}

static void put_mismatches(struct json *json, const struct run *run)
{
	const struct collectives_report *report = &run->collectives_report;

	json_begin_array(json, "mismatches");
	for (size_t r = 0; r < report->mismatch_count; r++) {
		const struct collective_mismatch *row = &report->mismatches[r];
		const struct communicator *communicator =
			&report->communicators.list[row->communicator];

		json_begin_object(json, NULL);
		put_communicator_json(json, communicator);
		json_u64(json, "index", row->number);
		json_string(json, "what", row->what == MISMATCH_BYTES ? "bytes" : "operation");
		json_begin_array(json, "processes");
		for (size_t m = 0; m < communicator->member_count; m++)
			if (comm_item(&communicator->members[m], row->number))
				json_string(json, NULL,
					    run->labels[communicator->members[m].log->log]);
		json_end_array(json);
		json_begin_array(json, "values");
		for (size_t m = 0; m < communicator->member_count; m++) {
			const struct rank_collective *item =
				comm_item(&communicator->members[m], row->number);

			if (item && row->what == MISMATCH_BYTES)
				json_u64(json, NULL, item->bytes);
			else if (item)
				json_string(json, NULL,
					    collective_operation_names[item->operation]);
		}
		json_end_array(json);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_unfinished(struct json *json, const struct run *run)
{
	const struct collectives_report *report = &run->collectives_report;

	json_begin_array(json, "unfinished");
	for (size_t r = 0; r < report->unfinished_count; r++) {
		const struct unfinished_collective *row = &report->unfinished[r];
		const struct communicator *communicator =
			&report->communicators.list[row->communicator];

		json_begin_object(json, NULL);
		put_communicator_json(json, communicator);
		json_u64(json, "index", row->number);
		json_string(json, "operation", collective_operation_names[row->operation]);
		put_labels(json, "present", run, communicator, row->number, true);
		put_labels(json, "absent", run, communicator, row->number, false);
		json_end_object(json);
	}
	json_end_array(json);
}

static int put_verdict(struct json *json, const struct run *run)
{
	const struct rank_verdict *verdict = &run->collectives_report.verdict;
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
		put_communicator_json(
			json, &run->collectives_report.communicators.list[verdict->communicator]);
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
	const struct collectives_report *report = &run->collectives_report;
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
	put_ranks_array(json, run);
	if (!error)
		error = put_communicators_json(json, run);
	if (!error)
		error = put_missing_json(json, run);
	put_groups(json, report);
	if (!error)
		error = put_causes_json(json, run);
	if (!error)
		error = put_spread_json(json, run);
	put_clocks(json, run);
	put_mismatches(json, run);
	put_unfinished(json, run);
	json_begin_array(json, "duplicates");
	for (size_t d = 0; d < report->communicators.duplicate_count; d++)
		json_string(json, NULL, run->labels[report->communicators.duplicates[d].log]);
	json_end_array(json);
	json_end_object(json);
	return error;
}
