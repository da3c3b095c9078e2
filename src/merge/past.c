/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The past of a thread as running sums.
 */
#include "merge/past.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "merge/grow.h"

#define THIN_MIN 8 /* moments; fewer are left alone */

static bool is_busy_before(const struct past_moment *moment)
{
	return !memcmp(moment->spent_ns, moment[-1].spent_ns, sizeof(moment->spent_ns));
}

/* The thread was in that state from the last moment until time_ns. */
static int add_moment(struct past *past, enum past_state state, uint64_t time_ns)
{
	struct past_moment *last = past->count ? &past->moments[past->count - 1] : NULL;
	struct past_moment *moment;

	if (last && time_ns <= last->time_ns)
		return 0;
	if (past->count > 1 && state == PAST_BUSY && is_busy_before(last)) {
		last->time_ns = time_ns;
		return 0;
	}
	if (grow(&past->moments, &past->capacity, past->count + 1, sizeof(*moment)) < 0)
		return -ENOMEM;
	moment = &past->moments[past->count++];
	*moment = (struct past_moment){.time_ns = time_ns};
	if (past->count == 1)
		return 0;
	memcpy(moment->spent_ns, moment[-1].spent_ns, sizeof(moment->spent_ns));
	if (state < PAST_COUNTED)
		moment->spent_ns[state] += time_ns - moment[-1].time_ns;
	return 0;
}

int past_enter(struct past *past, uint64_t enter_ns)
{
	uint64_t last_ns = past->count ? past->moments[past->count - 1].time_ns : 0;

	return add_moment(past,
			  enter_ns > last_ns && enter_ns - last_ns > PAST_BUSY_NS ? PAST_AWAY
										  : PAST_BUSY,
			  enter_ns);
}

int past_return(struct past *past, enum past_state state, uint64_t exit_ns)
{
	return add_moment(past, state, exit_ns);
}

void past_thin(struct past *past)
{
	size_t kept = 1, half = past->count / 2;
	struct past_moment *smaller;

	if (past->count < THIN_MIN)
		return;
	for (size_t m = 2; m < past->count; m += m < half ? 2 : 1)
		past->moments[kept++] = past->moments[m];
	past->count = kept;
	smaller = realloc(past->moments, kept * sizeof(*smaller));
	if (!smaller)
		return;
	past->moments = smaller;
	past->capacity = kept;
}

void past_free(struct past *past)
{
	free(past->moments);
	*past = (struct past){0};
}

/* The first moment that is later. */
static size_t moment_after(const struct past *past, uint64_t time_ns)
{
	size_t low = 0, high = past->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (past->moments[middle].time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The sums at time_ns; next is the first moment after it. */
static struct past_moment sums_at(const struct past *past, size_t next, uint64_t time_ns)
{
	const struct past_moment *after = &past->moments[next];
	struct past_moment sums = past->moments[next ? next - 1 : 0];
	uint64_t before_ns = sums.time_ns;

	sums.time_ns = time_ns;
	if (!next || next == past->count)
		return sums;
	for (int s = 0; s < PAST_COUNTED; s++)
		sums.spent_ns[s] +=
			(uint64_t)((unsigned __int128)(after->spent_ns[s] - sums.spent_ns[s]) *
				   (time_ns - before_ns) / (after->time_ns - before_ns));
	return sums;
}

/*
 * Own code around from_ns: how much of it lies in the stretch and has been added as PAST_AWAY
 * although it is short, because the rest of it is before the stretch.
 */
static uint64_t not_away(const struct past *past, size_t next, uint64_t from_ns, uint64_t until_ns)
{
	const struct past_moment *after = &past->moments[next], *before = after - 1;
	uint64_t end_ns;

	if (!next || next == past->count ||
	    after->spent_ns[PAST_AWAY] - before->spent_ns[PAST_AWAY] !=
		    after->time_ns - before->time_ns)
		return 0;
	end_ns = after->time_ns < until_ns ? after->time_ns : until_ns;
	return end_ns - from_ns <= PAST_BUSY_NS ? end_ns - from_ns : 0;
}

/* Before the first call, and after the last: own code as far as anyone knows. */
static void add_unknown(uint64_t length_ns, uint64_t spent_ns[PAST_STATES])
{
	spent_ns[length_ns > PAST_BUSY_NS ? PAST_AWAY : PAST_BUSY] += length_ns;
}

void past_spent(const struct past *past, uint64_t from_ns, uint64_t until_ns,
		uint64_t spent_ns[PAST_STATES])
{
	uint64_t first_ns = past->count ? past->moments[0].time_ns : UINT64_MAX;
	uint64_t last_ns = past->count ? past->moments[past->count - 1].time_ns : UINT64_MAX;
	struct past_moment from, until;
	uint64_t rest_ns;
	size_t next;

	if (from_ns < first_ns) {
		uint64_t end_ns = first_ns < until_ns ? first_ns : until_ns;

		add_unknown(end_ns - from_ns, spent_ns);
		from_ns = end_ns;
	}
	if (until_ns > last_ns) {
		uint64_t begin_ns = last_ns > from_ns ? last_ns : from_ns;

		add_unknown(until_ns - begin_ns, spent_ns);
		until_ns = begin_ns;
	}
	if (from_ns >= until_ns)
		return;
	next = moment_after(past, from_ns);
	from = sums_at(past, next, from_ns);
	until = sums_at(past, moment_after(past, until_ns), until_ns);
	until.spent_ns[PAST_AWAY] -= not_away(past, next, from_ns, until_ns);
	rest_ns = until_ns - from_ns;
	for (int s = 0; s < PAST_COUNTED; s++) {
		uint64_t part_ns = until.spent_ns[s] - from.spent_ns[s];

		/* (Sums between two moments are rounded, each by itself.) */
		part_ns = part_ns < rest_ns ? part_ns : rest_ns;
		spent_ns[s] += part_ns;
		rest_ns -= part_ns;
	}
	spent_ns[PAST_BUSY] += rest_ns;
}
