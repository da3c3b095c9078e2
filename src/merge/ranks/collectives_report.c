/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/collectives_report.h"

#include <math.h>
#include <stdlib.h>

#include "log/base/grow.h"
#include "merge/exporter.h"
#include "merge/ranks/arrivals.h"
#include "merge/ranks/blame.h"
#include "merge/ranks/collectives_words.h"

#define LISTED_MAX    1000 /* mismatches and unfinished collectives */
#define NOTABLE_SHARE 0.02 /* of the time of the job: less than this has no verdict */
#define SAME_SHARE    0.6  /* of all waits: the same rank causes them */
#define SLOW_FACTOR   1.5  /* a transfer is slow if it takes so much longer than comparable ones */
#define FAST_PART     0.05 /* comparable transfers: the fastest twentieth */

static struct collective_group *group_of(struct collectives_report *report, size_t communicator,
					 const struct arrivals *arrivals)
{
	struct collective_group *group;

	for (size_t g = report->group_count; g-- > 0;) {
		group = &report->groups[g];
		if (group->communicator == communicator && group->bytes == arrivals->bytes &&
		    group->operation == arrivals->operation)
			return group;
	}
	if (grow(&report->groups, &report->group_capacity, report->group_count + 1,
		 sizeof(*report->groups)) < 0)
		return NULL;
	group = &report->groups[report->group_count++];
	*group = (struct collective_group){.communicator = communicator,
					   .operation = arrivals->operation,
					   .bytes = arrivals->bytes};
	return group;
}

static int add_to_group(struct collectives_report *report, size_t communicator,
			const struct arrivals *arrivals)
{
	struct collective_group *group = group_of(report, communicator, arrivals);

	if (!group)
		return -ENOMEM;
	group->count++;
	if (!arrivals->has_waits)
		return 0;
	group->wait_ns += (uint64_t)arrivals->wait_ns;
	if (grow(&group->transfers_ns, &group->transfer_capacity, group->transfer_count + 1,
		 sizeof(*group->transfers_ns)) < 0)
		return -ENOMEM;
	group->transfers_ns[group->transfer_count++] = arrivals->transfer_ns;
	return 0;
}

static int add_mismatch(struct collectives_report *report, size_t communicator, size_t number)
{
	const struct communicator *one = &report->communicators.list[communicator];
	const struct rank_collective *first = NULL;
	enum mismatch what = MISMATCH_BYTES;

	for (size_t m = 0; m < one->member_count; m++) {
		const struct rank_collective *item = comm_item(&one->members[m], number);

		first = first ? first : item;
		if (item && item->operation != first->operation)
			what = MISMATCH_OPERATION;
	}
	if (report->mismatch_count == LISTED_MAX)
		return 0;
	if (grow(&report->mismatches, &report->mismatch_capacity, report->mismatch_count + 1,
		 sizeof(*report->mismatches)) < 0)
		return -ENOMEM;
	report->mismatches[report->mismatch_count++] =
		(struct collective_mismatch){communicator, number, what};
	return 0;
}

/* Adds a span of time to the bins that it touches. */
static void add_to_bins(const struct collectives_report *report, float bins[RANK_BINS],
			double from_ns, double until_ns)
{
	double bin_ns = report->job_ns / RANK_BINS;
	size_t first;

	if (bin_ns <= 0 || from_ns >= until_ns)
		return;
	from_ns = fmax(from_ns - report->first_ns, 0);
	until_ns = fmin(until_ns - report->first_ns, report->job_ns);
	first = (size_t)(from_ns / bin_ns);
	for (size_t b = first; b < RANK_BINS && (double)b * bin_ns < until_ns; b++)
		bins[b] += (float)((fmin(until_ns, (double)(b + 1) * bin_ns) -
				    fmax(from_ns, (double)b * bin_ns)) /
				   bin_ns);
}

static void add_rank_waits(struct collectives_report *report,
			   const struct communicator *communicator, size_t number)
{
	const struct arrivals *arrivals = &communicator->arrivals[number];

	for (size_t m = 0; m < communicator->member_count; m++) {
		const struct comm_member *member = &communicator->members[m];
		const struct rank_collective *item = comm_item(member, number);
		struct rank_waits *rank = &report->ranks[member->log->log];
		double exposed_ns;
		double wait_ns =
			arrivals_wait_ns(communicator, m, number, &report->clocks, &exposed_ns);

		if (!item)
			continue;
		if (m == arrivals->late)
			add_to_bins(report, rank->late, arrivals->mean_ns, arrivals->last_ns);
		else if (exposed_ns > 0)
			add_to_bins(report, rank->waiting, arrivals->last_ns - exposed_ns,
				    arrivals->last_ns);
		rank->wait_ns += (uint64_t)wait_ns;
		rank->exposed_ns += (uint64_t)exposed_ns;
		report->wait_ns += (uint64_t)wait_ns;
		report->exposed_ns += (uint64_t)exposed_ns;
		rank->transfer_ns +=
			(uint64_t)fmax((double)(item->end_ns - item->start_ns) - wait_ns, 0);
	}
	report->ranks[communicator->members[arrivals->late].log->log].late_count++;
}

static int add_communicator(struct collectives_report *report, size_t c)
{
	const struct communicator *communicator = &report->communicators.list[c];
	size_t expected = communicator->rank_count > communicator->member_count
				  ? communicator->rank_count
				  : communicator->member_count;
	int error = 0;

	for (size_t i = 0; i < communicator->instance_count && !error; i++) {
		const struct arrivals *arrivals = &communicator->arrivals[i];

		if (arrivals->is_different) {
			error = add_mismatch(report, c, i);
			continue;
		}
		report->matched_count += arrivals->present_count == expected;
		report->by_order_count +=
			arrivals->present_count == expected && communicator->is_by_order;
		report->partial_count += arrivals->present_count < expected;
		error = add_to_group(report, c, arrivals);
		if (!error && arrivals->has_waits)
			add_rank_waits(report, communicator, i);
	}
	return error;
}

static int add_unfinished(struct collectives_report *report, size_t c)
{
	const struct communicator *communicator = &report->communicators.list[c];
	size_t reach = communicator->instance_count;

	for (size_t m = 0; m < communicator->member_count; m++) {
		size_t own = comm_member_reach(communicator, m);

		reach = own > reach ? own : reach;
	}
	for (size_t i = communicator->instance_count;
	     i < reach && report->unfinished_count < LISTED_MAX; i++) {
		struct unfinished_collective *row;

		if (grow(&report->unfinished, &report->unfinished_capacity,
			 report->unfinished_count + 1, sizeof(*report->unfinished)) < 0)
			return -ENOMEM;
		row = &report->unfinished[report->unfinished_count++];
		*row = (struct unfinished_collective){.communicator = c, .number = i};
		for (size_t m = 0; m < communicator->member_count; m++) {
			const struct comm_member *member = &communicator->members[m];
			size_t next = member->first + member->count;

			for (size_t o = 0; o < member->log->open_call_count; o++) {
				const struct rank_open_call *call = &member->log->open_calls[o];

				if (call->communicator == communicator->key && next++ == i)
					row->operation = call->operation;
			}
		}
	}
	return 0;
}

static int compare_ns(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int compare_causes(const void *a, const void *b)
{
	const struct wait_cause *x = a, *y = b;

	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	return x->log != y->log ? (x->log < y->log ? -1 : 1)
				: (x->node < y->node ? -1 : x->node > y->node);
}

/* Whether transfers of two groups should take the same time. */
static bool is_like(const struct collectives_report *report, const struct collective_group *a,
		    const struct collective_group *b)
{
	const struct communicator *list = report->communicators.list;

	return a->operation == b->operation && a->bytes == b->bytes &&
	       list[a->communicator].member_count == list[b->communicator].member_count;
}

/* Returns what fast transfers take in the groups that are comparable with one. */
static double fast_ns(const struct collectives_report *report, const struct collective_group *like)
{
	double *all_ns = NULL, result;
	size_t count = 0, capacity = 0;

	for (size_t g = 0; g < report->group_count; g++) {
		const struct collective_group *group = &report->groups[g];

		if (!group->transfer_count || !is_like(report, group, like))
			continue;
		if (grow(&all_ns, &capacity, count + group->transfer_count, sizeof(*all_ns)) < 0)
			break;
		memcpy(all_ns + count, group->transfers_ns,
		       group->transfer_count * sizeof(*all_ns));
		count += group->transfer_count;
	}
	if (count)
		qsort(all_ns, count, sizeof(*all_ns), compare_ns);
	result = count ? all_ns[(size_t)(FAST_PART * (double)count)] : 0;
	free(all_ns);
	return result;
}

/* Sets what fast transfers take in all groups that are like one. */
static void set_fast(struct collectives_report *report, const struct collective_group *like)
{
	double ns = fast_ns(report, like);

	for (size_t g = 0; g < report->group_count; g++)
		if (is_like(report, &report->groups[g], like))
			report->groups[g].fast_ns = ns;
}

static void finish_groups(struct collectives_report *report)
{
	for (size_t g = 0; g < report->group_count; g++) {
		struct collective_group *group = &report->groups[g];

		if (!group->transfer_count)
			continue;
		if (group->fast_ns <= 0)
			set_fast(report, group);
		qsort(group->transfers_ns, group->transfer_count, sizeof(*group->transfers_ns),
		      compare_ns);
		group->transfer_ns =
			(uint64_t)((group->transfers_ns[(group->transfer_count - 1) / 2] +
				    group->transfers_ns[group->transfer_count / 2]) /
				   2);
		/* Transfers of unknown sizes cannot be compared. */
		for (size_t t = 0; t < group->transfer_count && group->bytes; t++)
			if (group->transfers_ns[t] > SLOW_FACTOR * group->fast_ns)
				group->slow_ns +=
					(uint64_t)(group->transfers_ns[t] - group->fast_ns);
	}
}

static void find_job_time(struct collectives_report *report)
{
	double first_ns = HUGE_VAL, last_ns = -HUGE_VAL;

	for (size_t c = 0; c < report->communicators.count; c++)
		for (size_t m = 0; m < report->communicators.list[c].member_count; m++) {
			const struct comm_member *member =
				&report->communicators.list[c].members[m];
			const struct rank_clock *clock = &report->clocks.list[member->host];

			if (!member->count)
				continue;
			first_ns = fmin(
				first_ns,
				rank_clock_ns(clock, comm_item(member, member->first)->start_ns));
			last_ns = fmax(
				last_ns,
				rank_clock_ns(clock,
					      comm_item(member, member->first + member->count - 1)
						      ->end_ns));
		}
	report->first_ns = first_ns;
	report->job_ns = last_ns > first_ns ? last_ns - first_ns : 0;
}

/* The part of the time of so many ranks. */
static double share_of(const struct collectives_report *report, uint64_t cost_ns, size_t rank_count)
{
	double all_ns = report->job_ns * (double)rank_count;

	return all_ns > 0 ? (double)cost_ns / all_ns : 0;
}

static uint64_t slow_ns_of(const struct collectives_report *report, size_t communicator)
{
	uint64_t slow_ns = 0;

	for (size_t g = 0; g < report->group_count; g++)
		if (report->groups[g].communicator == communicator)
			slow_ns += report->groups[g].slow_ns;
	return slow_ns * report->communicators.list[communicator].member_count;
}

/* The time of all ranks in slow transfers, and in waits for ranks that such transfers made late. */
static void judge_link(struct collectives_report *report, const struct run *run)
{
	struct collectives_verdict *verdict = &report->verdict;
	uint64_t waited_ns = 0, most_ns = 0;
	double share;
	size_t slowest = 0;

	for (size_t c = 0; c < report->cause_count; c++)
		if (wait_cause_is_transfer(&run->paths, report->causes[c].node))
			waited_ns += report->causes[c].cost_ns;
	for (size_t c = 0; c < report->communicators.count; c++)
		if (slow_ns_of(report, c) > most_ns) {
			slowest = c;
			most_ns = slow_ns_of(report, c);
		}
	if (!most_ns)
		return;
	share = share_of(report, most_ns + waited_ns, report->rank_count);
	if (share >= NOTABLE_SHARE &&
	    (share > verdict->share || wait_cause_is_transfer(&run->paths, verdict->node)))
		*verdict = (struct collectives_verdict){.kind = VERDICT_LINK,
							.communicator = slowest,
							.cost_ns = most_ns + waited_ns,
							.share = share};
}

/* The known path that causes most, of one log or of all (log: SIZE_MAX). */
static uint32_t main_cause(const struct collectives_report *report, size_t log)
{
	uint64_t most_ns = 0;
	uint32_t node = PATH_ROOT;

	for (size_t c = 0; c < report->cause_count; c++) {
		uint64_t ns = 0;

		if (report->causes[c].node == PATH_ROOT ||
		    (log != SIZE_MAX && report->causes[c].log != log))
			continue;
		for (size_t o = 0; o < report->cause_count; o++)
			if (report->causes[o].node == report->causes[c].node &&
			    (log == SIZE_MAX || report->causes[o].log == log))
				ns += report->causes[o].cost_ns;
		if (ns <= most_ns)
			continue;
		most_ns = ns;
		node = report->causes[c].node;
	}
	return node;
}

static void judge(struct collectives_report *report, const struct run *run)
{
	struct collectives_verdict *verdict = &report->verdict;
	size_t others = report->rank_count ? report->rank_count - 1 : 0;
	double share = share_of(report, report->cost_ns, others);
	size_t most = 0;

	for (size_t l = 1; l < run->inputs->count; l++)
		if (report->ranks[l].cost_ns > report->ranks[most].cost_ns)
			most = l;
	if (share >= NOTABLE_SHARE &&
	    (double)report->ranks[most].cost_ns > SAME_SHARE * (double)report->cost_ns)
		*verdict = (struct collectives_verdict){
			.kind = VERDICT_RANK,
			.log = most,
			.cost_ns = report->ranks[most].cost_ns,
			/* It does not wait itself. */
			.share = share_of(report, report->ranks[most].cost_ns,
					  report->rank_count - 1),
			.node = main_cause(report, most)};
	else if (share >= NOTABLE_SHARE)
		*verdict = (struct collectives_verdict){.kind = VERDICT_MOVING,
							.cost_ns = report->cost_ns,
							.share = share,
							.node = main_cause(report, SIZE_MAX)};
	judge_link(report, run);
}

int collectives_report_make(struct collectives_report *report, const struct run *run)
{
	const struct inputs *inputs = run->inputs;
	int error;

	report->ranks = calloc(inputs->count + 1, sizeof(*report->ranks));
	error = report->ranks ? rank_clocks_init(&report->clocks, inputs) : -ENOMEM;
	if (!error)
		error = communicators_find(&report->communicators, run->rank_logs,
					   run->rank_log_count, inputs, report->clocks.hosts);
	if (!error)
		error = rank_clocks_align(&report->clocks, &report->communicators);
	if (!error)
		error = arrivals_compare(&report->communicators, &report->clocks);
	for (size_t l = 0; l < run->rank_log_count && !error; l++) {
		report->ranks[run->rank_logs[l].log].collective_count = run->rank_logs[l].count;
		report->count += run->rank_logs[l].count;
		report->rank_count += run->rank_logs[l].count > 0;
	}
	if (!error)
		find_job_time(report);
	for (size_t c = 0; c < report->communicators.count && !error; c++) {
		error = add_communicator(report, c);
		if (!error)
			error = add_unfinished(report, c);
	}
	if (error)
		return error;
	finish_groups(report);
	error = blame_waits(report, run);
	if (report->cause_count)
		qsort(report->causes, report->cause_count, sizeof(*report->causes), compare_causes);
	judge(report, run);
	return error;
}

void collectives_report_free(struct collectives_report *report)
{
	for (size_t g = 0; g < report->group_count; g++)
		free(report->groups[g].transfers_ns);
	communicators_free(&report->communicators);
	rank_clocks_free(&report->clocks);
	free(report->ranks);
	free(report->groups);
	free(report->causes);
	xt_hash_free(&report->cause_table);
	free(report->mismatches);
	free(report->unfinished);
	*report = (struct collectives_report){0};
}
