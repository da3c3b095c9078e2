/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches collectives across ranks.
 */
#include "merge/ranks/communicators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/read/inputs.h"

#define SHIFTS_MAX  4096 /* numbers tried for the first collective of a log */
#define SAMPLES_MAX 64	 /* collectives compared for each */

/* Whether two logs can be of one job. Communicators by order have nothing else in common. */
static bool may_share_job(const struct inputs *inputs, const struct rank_log *a,
			  const struct rank_log *b)
{
	const struct input *x = &inputs->logs[a->log], *y = &inputs->logs[b->log];

	return !strcmp(x->program, y->program) && !strcmp(x->command, y->command) &&
	       x->world_size == y->world_size && !strcmp(x->run, y->run) &&
	       !strcmp(x->batch_job, y->batch_job);
}

static struct communicator *find_one(struct communicators *out, const struct inputs *inputs,
				     const struct rank_log *log, const struct rank_member *member)
{
	struct communicator *communicator;

	for (size_t c = 0; c < out->count; c++) {
		communicator = &out->list[c];
		if (communicator->key == member->communicator &&
		    communicator->is_by_order == member->is_by_order &&
		    (!member->is_by_order ||
		     may_share_job(inputs, communicator->members[0].log, log)))
			return communicator;
	}
	communicator = xt_new(out->list, out->count, out->capacity);
	*communicator = (struct communicator){.key = member->communicator,
					      .is_by_order = member->is_by_order};
	return communicator;
}

/* Returns 1 if the log was left out as a duplicate, 0, or -ENOMEM. */
static int check_duplicate(struct communicators *out, const struct communicator *communicator,
			   const struct rank_log *log, const struct inputs *inputs)
{
	uint32_t rank = inputs->logs[log->log].rank;

	for (size_t m = 0; m < communicator->member_count && rank != RANK_UNKNOWN; m++) {
		const struct rank_log *other = communicator->members[m].log;

		if (inputs->logs[other->log].rank != rank || other == log)
			continue;
		for (size_t d = 0; d < out->duplicate_count; d++)
			if (out->duplicates[d].log == log->log)
				return 1;
		xt_append(out->duplicates, out->duplicate_count, out->duplicate_capacity,
			  (struct duplicate_rank){log->log, other->log, rank});
		return 1;
	}
	return 0;
}

/* Whether the n-th of one rank is the n-th of all others. Sends have other numbers in each. */
static bool is_numbered(const struct rank_collective *collective)
{
	return collective->operation != COLLECTIVE_SEND_RECV;
}

static void add_items(struct comm_member *to, uint32_t member)
{
	const struct rank_log *log = to->log;
	size_t count = 0;

	for (size_t i = 0; i < log->count; i++)
		count += log->list[i].member == member && is_numbered(&log->list[i]);
	to->items = xt_malloc((count + 1) * sizeof(*to->items));
	for (size_t i = 0; i < log->count; i++)
		if (log->list[i].member == member && is_numbered(&log->list[i]))
			to->items[to->count++] = (uint32_t)i;
}

static int add_member(struct communicators *out, const struct inputs *inputs,
		      const struct rank_log *log, uint32_t m, const uint32_t *hosts)
{
	const struct rank_member *member = &log->members[m];
	struct communicator *communicator = find_one(out, inputs, log, member);
	struct comm_member *to;
	int error = check_duplicate(out, communicator, log, inputs);

	if (error)
		return error < 0 ? error : 0;
	to = xt_new(communicator->members, communicator->member_count,
		    communicator->member_capacity);
	*to = (struct comm_member){
		.log = log, .member = member, .rank = member->rank, .host = hosts[log->log]};
	if (member->rank_count)
		communicator->rank_count = member->rank_count;
	add_items(to, m);
	return 0;
}

static const struct rank_collective *item(const struct comm_member *member, size_t index)
{
	return &member->log->list[member->items[index]];
}

/*
 * How badly a member fits if its first collective has the number `first` of the base. That is how
 * many operations or sizes differ, and how much the differences of the ends vary.
 */
static double misfit(const struct comm_member *base, const struct comm_member *member,
		     int64_t first)
{
	double differences_ns[SAMPLES_MAX];
	int64_t from = first < 0 ? -first : 0, until = (int64_t)base->count - first, step;
	size_t count = 0, wrong = 0;

	if (until > (int64_t)member->count)
		until = (int64_t)member->count;
	if (from >= until)
		return (double)INT64_MAX;
	step = (until - from + SAMPLES_MAX - 1) / SAMPLES_MAX;
	for (int64_t i = from; i < until; i += step) {
		const struct rank_collective *mine = item(member, (size_t)i);
		const struct rank_collective *theirs = item(base, (size_t)(i + first));

		wrong += mine->operation != theirs->operation || mine->bytes != theirs->bytes;
		differences_ns[count++] = (double)mine->end_ns - (double)theirs->end_ns;
	}
	qsort(differences_ns, count, sizeof(*differences_ns), compare_doubles);
	/* Half of the differences lie within this span. */
	return (differences_ns[count - 1 - count / 4] - differences_ns[count / 4]) +
	       (double)wrong / (double)count * 1e15;
}

/* Returns the number in the base of the collective that ended at a time of the same host. */
static int64_t nearest_end(const struct comm_member *base, int64_t end_ns)
{
	size_t low = FIRST_NOT(i, 0, base->count, item(base, i)->end_ns <= end_ns);

	if (!low)
		return 0;
	if (low < base->count &&
	    item(base, low)->end_ns - end_ns < end_ns - item(base, low - 1)->end_ns)
		return (int64_t)low;
	return (int64_t)low - 1;
}

/*
 * Returns the number in the base of a member's first collective. Negative: before the base's first.
 */
static int64_t first_number(const struct comm_member *base, const struct comm_member *member)
{
	int64_t least = -(int64_t)(member->count / 2), most = (int64_t)(base->count / 2), best = 0;
	double least_misfit = misfit(base, member, 0);
	bool begins_alike = base->member->saw_join && member->member->saw_join;

	if (begins_alike || (base->count == member->count && !base->log->lacks_beginning &&
			     !member->log->lacks_beginning))
		return 0;
	if (base->host == member->host) {
		size_t middle = member->count / 2;

		return nearest_end(base, item(member, middle)->end_ns) - (int64_t)middle;
	}
	/* The one that began later has less, if both ended together. */
	if (base->count > member->count)
		most = (int64_t)(base->count - member->count) + 2;
	if (least < -SHIFTS_MAX / 2)
		least = -SHIFTS_MAX / 2;
	if (most > least + SHIFTS_MAX)
		least = most - SHIFTS_MAX;
	for (int64_t first = least; first <= most; first++) {
		double other = misfit(base, member, first);

		if (other < least_misfit) {
			least_misfit = other;
			best = first;
		}
	}
	return best;
}

static void number_items(struct communicator *communicator)
{
	struct comm_member *members = communicator->members;
	size_t base = 0, before = 0;
	int64_t *firsts = xt_calloc(communicator->member_count, sizeof(*firsts));

	for (size_t m = 1; m < communicator->member_count; m++)
		if (members[m].count > members[base].count)
			base = m;
	for (size_t m = 0; m < communicator->member_count; m++) {
		if (m != base && members[m].count)
			firsts[m] = first_number(&members[base], &members[m]);
		if (firsts[m] < -(int64_t)before)
			before = (size_t)-firsts[m];
	}
	for (size_t m = 0; m < communicator->member_count; m++) {
		members[m].first = (size_t)((firsts[m]) + (int64_t)before);
		if (members[m].first + members[m].count > communicator->instance_count)
			communicator->instance_count = members[m].first + members[m].count;
	}
	free(firsts);
}

/*
 * A log that begins late does not have the rank in the communicator. If that of the others is their
 * rank in the job, so is this.
 */
static void complete_ranks(struct communicator *communicator, const struct inputs *inputs)
{
	bool is_job = true, is_known = false;

	for (size_t m = 0; m < communicator->member_count; m++) {
		const struct comm_member *member = &communicator->members[m];

		is_known |= member->rank != UINT32_MAX;
		is_job &= member->rank == UINT32_MAX ||
			  member->rank == inputs->logs[member->log->log].rank;
	}
	for (size_t m = 0; m < communicator->member_count && is_job && is_known; m++)
		communicator->members[m].rank =
			inputs->logs[communicator->members[m].log->log].rank;
}

static void free_one(struct communicator *communicator)
{
	for (size_t m = 0; m < communicator->member_count; m++)
		free(communicator->members[m].items);
	free(communicator->members);
	free(communicator->arrivals);
}

int communicators_find(struct communicators *out, const struct rank_log *logs, size_t log_count,
		       const struct inputs *inputs, const uint32_t *hosts)
{
	size_t kept = 0;
	int error = 0;

	for (size_t l = 0; l < log_count && !error; l++)
		for (uint32_t m = 0; m < logs[l].member_count && !error; m++)
			if (!logs[l].members[m].is_rest)
				error = add_member(out, inputs, &logs[l], m, hosts);
	for (size_t c = 0; c < out->count && !error; c++) {
		/* Several ranks are kept even if the logs of all but one are missing. */
		if (out->list[c].member_count < 2 && out->list[c].rank_count < 2) {
			free_one(&out->list[c]);
			continue;
		}
		number_items(&out->list[c]);
		complete_ranks(&out->list[c], inputs);
		out->list[kept++] = out->list[c];
	}
	if (!error)
		out->count = kept;
	return error;
}

void communicator_name(const struct communicator *communicator, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, communicator->is_by_order ? "stream %llu" : "%llu",
		 (unsigned long long)communicator->key);
}

size_t comm_member_reach(const struct communicator *communicator, size_t m)
{
	const struct comm_member *member = &communicator->members[m];
	size_t reach = member->first + member->count;

	for (size_t o = 0; o < member->log->open_call_count && !communicator->is_by_order; o++)
		reach += member->log->open_calls[o].communicator == communicator->key;
	return reach;
}

void communicators_free(struct communicators *communicators)
{
	for (size_t c = 0; c < communicators->count; c++)
		free_one(&communicators->list[c]);
	free(communicators->list);
	free(communicators->duplicates);
	*communicators = (struct communicators){0};
}
