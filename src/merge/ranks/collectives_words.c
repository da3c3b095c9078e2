/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/collectives_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/number_format.h"
#include "merge/ranks/compared_ranks.h"
#include "merge/read/inputs.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

#define RANKS_MAX     1000000 /* larger numbers are no ranks */
#define ABSENT_SHOWN  8	      /* ranks that a sentence names */
#define PART_BYTES    32
#define FREE_WAITS    2	   /* waits that cost less than 1/2 of their length */
#define NOTABLE_WAITS 0.05 /* of the time of all ranks */

/* Returns the items with commas between them, and frees the list. */
static char *joined(const struct cell_list *list)
{
	char *text = cell_joined(&(struct cell){.text = list->texts, .length = list->length}, ", ");

	free(list->texts);
	return text;
}

/* Writes "0-3, 7". present: by rank. */
static char *list_ranks(const uint8_t *present, size_t count)
{
	struct cell_list list = {0};
	char text[48];

	for (size_t r = 0, until; r < count; r = until + 1) {
		for (until = r; until < count && present[until]; until++)
			;
		if (until - r > 1)
			snprintf(text, sizeof(text), "%zu-%zu", r, until - 1);
		else
			snprintf(text, sizeof(text), "%zu", r);
		if (until > r)
			list_add(&list, text);
	}
	return joined(&list);
}

/* Marks the ranks of the job, of at most RANKS_MAX. */
static uint8_t *rank_marks(const struct run *run, size_t *count)
{
	*count = 0;
	for (size_t l = 0; l < run->inputs->count; l++) {
		const struct input *log = &run->inputs->logs[l];

		if (log->rank < RANKS_MAX && log->rank >= *count)
			*count = (size_t)log->rank + 1;
		if (log->world_size <= RANKS_MAX && log->world_size > *count)
			*count = log->world_size;
	}
	return xt_calloc(*count + 1, 1);
}

char *communicator_ranks_text(const struct run *run, const struct communicator *communicator)
{
	size_t count;
	uint8_t *marks = rank_marks(run, &count);
	char *text;

	for (size_t m = 0; m < communicator->members.count; m++) {
		uint32_t rank = run->inputs->logs[communicator->members.list[m].log->log].rank;

		if (rank < count)
			marks[rank] = 1;
	}
	text = list_ranks(marks, count);
	free(marks);
	return text;
}

char *missing_ranks_text(const struct run *run)
{
	size_t count;
	uint8_t *marks = rank_marks(run, &count);
	uint32_t world_size = run->inputs->logs[0].world_size;
	char *text;

	memset(marks, world_size == count, count);
	for (size_t l = 0; l < run->inputs->count; l++) {
		const struct input *log = &run->inputs->logs[l];

		/* Logs of several jobs, or of none, say nothing of others. */
		if (log->world_size != world_size)
			memset(marks, 0, count);
		else if (log->rank < count)
			marks[log->rank] = 0;
	}
	text = list_ranks(marks, count);
	free(marks);
	return text;
}

const char *verdict_kind_name(enum verdict_kind kind)
{
	static const char *const names[] = {
		[VERDICT_NONE] = "none", [VERDICT_RANK] = "rank",	[VERDICT_MOVING] = "moving",
		[VERDICT_LINK] = "link", [VERDICT_UNKNOWN] = "unknown", [VERDICT_HANG] = "hang"};

	return names[kind];
}

/* " (93 %)", of what the ranks lost in the job. "" for the cost of steps, which is another time. */
static void format_part(char text[PART_BYTES], const struct rank_verdict *verdict, uint64_t ns,
			const char *of, bool is_of_steps)
{
	double percent = verdict->cost_ns ? 100 * (double)ns / (double)verdict->cost_ns : 0;

	text[0] = '\0';
	if (!is_of_steps)
		snprintf(text, PART_BYTES, " (%.0f %%%s)", percent, of);
}

/* " Main cause (93 %): load_batch (data.py:88); a kernel of this line takes longer." or "". */
static char *cause_text(const struct run *run, const struct rank_verdict *verdict, bool is_of_steps)
{
	char launches[PART_BYTES], place[PART_BYTES], part[PART_BYTES];
	char *where = wait_cause_where(&run->paths, verdict->node), *text;
	const char *what = wait_cause_what(&run->paths, verdict->node);

	if (!where[0]) {
		free(where);
		return xt_strdup(" No call path takes longer than in the other ranks.");
	}
	format_part(launches, verdict, verdict->launch_late_ns, " of this", is_of_steps);
	format_part(place, verdict, verdict->place_ns, "", is_of_steps);
	format_part(part, verdict, verdict->place_ns, " of this", is_of_steps);
	if (verdict->is_of_launches)
		text = xt_asprintf(" Main cause%s: the CPU launches work too slowly, most in "
				   "%s%s.",
				   launches, where, place);
	else if (!verdict_has_place(verdict))
		text = xt_asprintf(" No line stands out.");
	else
		text = xt_asprintf(" Main cause%s: %s%s%s.", part, where, what[0] ? "; " : "",
				   what);
	free(where);
	return text;
}

char *incomplete_text(const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	unsigned long long partial = report->counts.partial_count;
	char *ranks = missing_ranks_text(run), *text;

	if (ranks[0])
		text = xt_asprintf(
			"No log: rank %s of %u. If it is the late one, this shows only as "
			"longer transfers of the others.",
			ranks, run->inputs->logs[0].world_size);
	else if (partial)
		text = xt_asprintf(
			"%llu of %llu collectives lack some ranks, whose logs have only a "
			"part of the run. If such a rank is late, this looks like slow "
			"transfers.",
			partial, partial + report->counts.matched_count);
	else
		text = xt_strdup("");
	free(ranks);
	return text;
}

char *jobs_text(const struct run *run)
{
	return xt_asprintf(
		"The logs are of %zu jobs: no collective connects them. Percentages are of "
		"the time of all jobs together.",
		run->compared->report.job_count);
}

size_t collectives_notes(const struct run *run, char *notes[COLLECTIVES_NOTES_MAX])
{
	const struct collectives_report *report = &run->compared->report;
	size_t count = 0;

	if (report->job_count > 1)
		notes[count++] = jobs_text(run);
	if (report->counts.by_order_count)
		notes[count++] = xt_strdup("Some collectives do not say their communicator. They "
					   "are compared by the order on their stream.");
	if (report->times.exposed_ns > FREE_WAITS * report->times.cost_ns &&
	    (double)report->times.exposed_ns > NOTABLE_WAITS * report->times.ranks_ns)
		notes[count++] = xt_strdup("Most of the waits cost nothing: without them, the GPU "
					   "would have waited for its CPU instead.");
	return count;
}

/* "node1, node2". */
static char *hosts_of(const struct run *run, const struct communicator *communicator)
{
	struct cell_list hosts = {0};

	for (size_t m = 0; m < communicator->members.count; m++) {
		bool is_known = false;

		for (size_t o = 0; o < m; o++)
			is_known |= communicator->members.list[o].host ==
				    communicator->members.list[m].host;
		if (!is_known)
			list_add(&hosts,
				 run->inputs->logs[communicator->members.list[m].log->log].host);
	}
	return joined(&hosts);
}

static char *link_text(const struct run *run, const char *share)
{
	const struct collectives_report *report = &run->compared->report;
	const struct communicator *communicator =
		&report->communicators.list[report->verdict.communicator];
	char *hosts = hosts_of(run, communicator), *text;
	char *ranks = communicator_ranks_text(run, communicator);

	if (communicator->rank_count > communicator->members.count)
		text = xt_asprintf("Ranks %s lose %s of the job in collectives. Other ranks of "
				   "their communicator have no log, or only a part: either one "
				   "of these is late, or a link is slow.",
				   ranks, share);
	else
		text = xt_asprintf("Slow transfers between ranks %s on %s cost %s of the job. No "
				   "call path is to blame.",
				   ranks, hosts, share);
	free_all(hosts, ranks);
	return text;
}

char *collective_text(const struct run *run, const struct communicator *communicator, size_t number,
		      uint8_t operation)
{
	char *ranks = communicator_ranks_text(run, communicator);
	char *text = xt_asprintf("%s %zu of ranks %s", collective_operation_names[operation],
				 number, ranks);

	free(ranks);
	return text;
}

/* The labels of the members that never reached a collective; "" if all did. */
static char *absent_members_text(const struct run *run, const struct communicator *communicator,
				 size_t number)
{
	struct cell_list absent = {0};
	size_t count = 0;

	for (size_t m = 0; m < communicator->members.count && count <= ABSENT_SHOWN; m++)
		if (comm_member_reach(communicator, m) <= number)
			list_add(&absent,
				 count++ == ABSENT_SHOWN
					 ? "\xe2\x80\xa6"
					 : run->labels[communicator->members.list[m].log->log]);
	return joined(&absent);
}

/* " The last GPU work of rank 2 is from load_batch (data.py:88).", or that there is none, or "". */
static char *last_work_text(const struct run *run)
{
	const struct rank_verdict *verdict = &run->compared->report.verdict;
	char *where = wait_cause_where(&run->paths, verdict->node), *text;

	if (verdict->log == SIZE_MAX)
		text = xt_strdup("");
	else if (!where[0])
		text = xt_asprintf(" The log of %s has no GPU work.", run->labels[verdict->log]);
	else
		text = xt_asprintf(" The last GPU work of %s is from %s.",
				   run->labels[verdict->log], where);
	free(where);
	return text;
}

/* Names the first collective that never finished, and the ranks that it lacks. */
static char *hang_text(const struct run *run)
{
	const struct collectives_report *report = &run->compared->report;
	const struct unfinished_collective *row = &report->unfinished.list[0];
	const struct communicator *communicator = &report->communicators.list[row->communicator];
	char *what = collective_text(run, communicator, row->number, row->operation);
	char *absent = absent_members_text(run, communicator, row->number);
	char *last = last_work_text(run), *text;

	if (absent[0])
		text = xt_asprintf("The job hangs: %s never reached %s.%s", absent, what, last);
	else
		text = xt_asprintf("The job hangs: %s never finished. All ranks with a log are "
				   "there; others have no log.",
				   what);
	free_all(what, absent, last);
	return text;
}

char *verdict_text(const struct run *run, const char *step_cost)
{
	const struct rank_verdict *verdict = &run->compared->report.verdict;
	char share[64], time[TIME_BYTES], *cause, *text;

	format_time_short(
		time, (uint64_t)(verdict->share * collectives_mean_rank_ns(&run->compared->report,
									   run->inputs->count)));
	snprintf(share, sizeof(share), "%.1f %% (%s of each rank)", verdict->share * 100, time);
	if (verdict->kind == VERDICT_LINK)
		return link_text(run, share);
	if (verdict->kind == VERDICT_HANG)
		return hang_text(run);
	if (verdict->kind == VERDICT_UNKNOWN)
		return xt_strdup(
			"No collective could be compared, so it is not known who waits for "
			"whom.");
	if (verdict->kind == VERDICT_NONE)
		return xt_strdup("The ranks hardly wait for each other in collectives.");
	cause = cause_text(run, verdict, step_cost);
	if (verdict->kind == VERDICT_RANK)
		text = xt_asprintf("%s costs %s%s: the other ranks wait for it in collectives.%s",
				   run->labels[verdict->log], step_cost ? "" : "the job ",
				   step_cost ?: share, cause);
	else
		text = xt_asprintf(
			"Ranks wait for each other in collectives for %s%s, not always for the "
			"same rank.%s",
			step_cost ?: share, step_cost ? "" : " of the job", cause);
	free(cause);
	return text;
}
