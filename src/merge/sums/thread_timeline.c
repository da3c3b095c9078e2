/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The past of a thread as running sums.
 */
#include "merge/sums/thread_timeline.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/grow.h"

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

/* Is all between a moment and the one before own code that is long? */
static bool is_away_before(const struct past_moment *moment)
{
	return moment->spent_ns[PAST_AWAY] - moment[-1].spent_ns[PAST_AWAY] ==
	       moment->time_ns - moment[-1].time_ns;
}

/* Forgets what was from time_ns on; of own code around it, how long it is now is left to be said. */
static void go_back(struct past *past, uint64_t time_ns)
{
	size_t next = moment_after(past, time_ns);

	if (next == past->count)
		return;
	if (next && past->moments[next - 1].time_ns < time_ns &&
	    !is_away_before(&past->moments[next])) {
		past->moments[next] = sums_at(past, next, time_ns);
		next++;
	}
	past->count = next;
}

/* Of its own code before a call. */
static int add_own_code(struct past *past, uint64_t enter_ns)
{
	uint64_t last_ns = past->count ? past->moments[past->count - 1].time_ns : 0;

	return add_moment(past,
			  enter_ns > last_ns && enter_ns - last_ns > PAST_BUSY_NS ? PAST_AWAY
										  : PAST_BUSY,
			  enter_ns);
}

/* A piece of a call that was entered at enter_ns. Neighbours of one state in it are one. */
static int add_piece(struct past *past, const struct past_piece *piece, uint64_t enter_ns)
{
	struct past_piece *last = past->piece_count ? &past->pieces[past->piece_count - 1] : NULL;

	if (piece->until_ns <= piece->from_ns)
		return 0;
	if (last && last->state == piece->state && last->from_ns >= enter_ns &&
	    last->until_ns == piece->from_ns) {
		last->until_ns = piece->until_ns;
	} else {
		if (past->piece_count == PAST_PIECES_MAX) {
			past->piece_count /= 2;
			memmove(past->pieces, past->pieces + past->piece_count,
				past->piece_count * sizeof(*past->pieces));
		}
		past->pieces[past->piece_count++] = *piece;
	}
	return add_moment(past, piece->state, piece->until_ns);
}

/* The number of the last pieces that lie within a call. */
static size_t pieces_within(const struct past *past, uint64_t enter_ns, uint64_t exit_ns)
{
	const struct past_piece *end = past->pieces + past->piece_count, *piece = end;

	while (piece != past->pieces && piece[-1].from_ns >= enter_ns &&
	       piece[-1].until_ns <= exit_ns)
		piece--;
	return (size_t)(end - piece);
}

int past_call(struct past *past, enum past_state state, uint64_t enter_ns, uint64_t exit_ns,
	      uint64_t *own_ns)
{
	struct past_piece inner[PAST_PIECES_MAX], own = {enter_ns, enter_ns, state};
	size_t inner_count;
	int error;

	*own_ns = exit_ns > enter_ns ? exit_ns - enter_ns : 0;
	if (!past->pieces)
		past->pieces = malloc(PAST_PIECES_MAX * sizeof(*past->pieces));
	if (!past->pieces)
		return -ENOMEM;
	inner_count = pieces_within(past, enter_ns, exit_ns);
	if (inner_count) {
		past->piece_count -= inner_count;
		memcpy(inner, past->pieces + past->piece_count, inner_count * sizeof(*inner));
		if (past->piece_count && past->pieces[past->piece_count - 1].until_ns > enter_ns)
			own.from_ns = past->pieces[past->piece_count - 1].until_ns;
		go_back(past, own.from_ns);
	}
	error = add_own_code(past, enter_ns);
	if (past->count && past->moments[past->count - 1].time_ns > own.from_ns)
		own.from_ns = past->moments[past->count - 1].time_ns;
	for (size_t i = 0; i < inner_count && !error; i++) {
		own.until_ns = inner[i].from_ns;
		error = add_piece(past, &own, enter_ns);
		if (!error)
			error = add_piece(past, &inner[i], enter_ns);
		*own_ns -= inner[i].until_ns - inner[i].from_ns;
		own.from_ns = inner[i].until_ns;
	}
	own.until_ns = exit_ns;
	return error ? error : add_piece(past, &own, enter_ns);
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
	free(past->pieces);
	*past = (struct past){0};
}

/*
 * Own code around from_ns: how much of it lies in the stretch and has been added as PAST_AWAY
 * although it is short, because the rest of it is before the stretch.
 */
static uint64_t not_away(const struct past *past, size_t next, uint64_t from_ns, uint64_t until_ns)
{
	const struct past_moment *after = &past->moments[next];
	uint64_t end_ns;

	if (!next || next == past->count || !is_away_before(after))
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
