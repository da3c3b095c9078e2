/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Share the time of one device among the work running on it.
 */
#include "merge/sums/exclusive.h"

#include <stdbool.h>

#include "base/memory.h"

#define FRACTION_BITS 64 /* the integral is in units of 2^-64 ns */

/*
 * Division truncates, so three thirds are slightly less than 1 ns. This tolerance rounds them up.
 */
#define FRACTION_GUARD ((unsigned __int128)1 << 32)

static bool ends_before(const struct exclusive_running *a, const struct exclusive_running *b)
{
	return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->sequence < b->sequence;
}

static void push(struct exclusive *e, struct exclusive_running running)
{
	uint32_t i = e->count++;

	for (; i && ends_before(&running, &e->heap[(i - 1) / 2]); i = (i - 1) / 2)
		e->heap[i] = e->heap[(i - 1) / 2];
	e->heap[i] = running;
}

static struct exclusive_running pop(struct exclusive *e)
{
	struct exclusive_running first = e->heap[0], last = e->heap[--e->count];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < e->count && ends_before(&e->heap[child + 1], &e->heap[child]))
			child++;
		if (child >= e->count || !ends_before(&e->heap[child], &last))
			break;
		e->heap[i] = e->heap[child];
		i = child;
	}
	e->heap[i] = last;
	return first;
}

static void advance(struct exclusive *e, uint64_t to_ns)
{
	uint64_t passed_ns = to_ns - e->now_ns;

	if (e->count) {
		/* Usually one piece runs. Avoid the slow 128-bit division then. */
		unsigned __int128 passed = (unsigned __int128)passed_ns << FRACTION_BITS;

		e->integral += e->count == 1 ? passed : passed / e->count;
		e->busy_ns += passed_ns;
	}
	e->now_ns = to_ns;
}

static void end_first(struct exclusive *e)
{
	struct exclusive_running ended = pop(e);
	unsigned __int128 share = e->integral - ended.from + e->carry;
	uint64_t share_ns = (uint64_t)((share + FRACTION_GUARD) >> FRACTION_BITS);

	/* The last piece of a busy period gets the rest: its share plus the lost fractions. */
	if (!e->count)
		share_ns = e->busy_ns - e->given_ns;
	e->carry = share - ((unsigned __int128)share_ns << FRACTION_BITS);
	e->given_ns += share_ns;
	e->give(e->context, ended.owner, share_ns);
	if (e->count)
		return;
	e->integral = e->carry = 0;
	e->busy_ns = e->given_ns = 0;
}

static void end_all_until(struct exclusive *e, uint64_t time_ns)
{
	while (e->count && e->heap[0].end_ns <= time_ns) {
		advance(e, e->heap[0].end_ns);
		end_first(e);
	}
}

void exclusive_add(struct exclusive *e, uint64_t start_ns, uint64_t end_ns, uint32_t owner)
{
	if (start_ns < e->now_ns)
		start_ns = e->now_ns;
	if (end_ns <= start_ns)
		return;
	end_all_until(e, start_ns);
	advance(e, start_ns);
	if (e->count == EXCLUSIVE_RUNNING_MAX) {
		e->dropped_count++;
		return;
	}
	xt_grow(&e->heap, &e->capacity, e->count + 1, sizeof(*e->heap));
	push(e, (struct exclusive_running){end_ns, e->integral, e->sequence++, owner});
}

void exclusive_finish(struct exclusive *e)
{
	end_all_until(e, UINT64_MAX);
}

void exclusive_free(struct exclusive *e)
{
	free(e->heap);
	e->heap = NULL;
	e->count = 0;
	e->capacity = 0;
}
