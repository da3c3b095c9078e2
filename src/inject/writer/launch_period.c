/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches after 1,024 launches, and again after twice as many. So the searches cost about as much
 * as the last one, and short iterations are found soon.
 */
#include "inject/writer/launch_period.h"

#include <stdlib.h>

#include "inject/memory/budget.h"
#include "inject/runtime/debug_log.h"
#include "log/base/grow.h"
#include "log/base/period.h"

#define FIRST_SEARCH 1024u

#define THREADS_MAX 64 /* further ones are not searched */

/* The arrays and what a search needs, at their largest. */
#define PERIOD_BYTES ((size_t)PERIOD_LAUNCHES_MAX * 72)

static void forget_launches(struct launch_period *period)
{
	if (period->launches)
		budget_give_back(PERIOD_BYTES);
	free(period->launches);
	free(period->places);
	xt_hash_free(&period->table);
	period->launches = NULL;
	period->places = NULL;
	period->launch_capacity = period->place_capacity = 0;
	period->launch_count = period->place_count = 0;
	period->next_search = FIRST_SEARCH;
}

/* The index of a place, or UINT32_MAX if out of memory. */
static uint32_t index_of(struct launch_period *period, struct launch_place place)
{
	uint32_t hash = xt_hash_u64((uint64_t)place.thread_id << 32 | place.stack_id);
	struct xt_hash_slot *slot;

	if (!xt_hash_reserve(&period->table, period->place_count + 1))
		return UINT32_MAX;
	for (slot = xt_hash_first(&period->table, hash); slot->item;
	     slot = xt_hash_next(&period->table, slot)) {
		const struct launch_place *known = &period->places[slot->item - 1];

		if (known->thread_id == place.thread_id && known->stack_id == place.stack_id)
			return slot->item - 1;
	}
	if (grow(&period->places, &period->place_capacity, period->place_count + 1,
		 sizeof(*period->places)))
		return UINT32_MAX;
	period->places[period->place_count++] = place;
	*slot = (struct xt_hash_slot){hash, period->place_count};
	return period->place_count - 1;
}

/* Returns 0 or -ENOMEM. */
static int keep_launch(struct launch_period *period, struct launch_place place)
{
	uint32_t index;

	if (!period->launches) {
		if (!budget_take(PERIOD_BYTES))
			return -ENOMEM;
		period->launch_capacity = PERIOD_LAUNCHES_MAX;
		period->launches = malloc(period->launch_capacity * sizeof(*period->launches));
		if (!period->launches) {
			budget_give_back(PERIOD_BYTES);
			return -ENOMEM;
		}
		period->next_search = FIRST_SEARCH;
	}
	index = index_of(period, place);
	if (index == UINT32_MAX)
		return -ENOMEM;
	period->launches[period->launch_count++] = index;
	return 0;
}

/* The thread with the most launches. counts has a zero for each place. */
static uint32_t busiest_thread(const struct launch_period *period, uint32_t *counts)
{
	struct {
		uint32_t thread_id, count;
	} threads[THREADS_MAX];
	uint32_t thread_count = 0, best = 0, t;

	for (uint32_t i = 0; i < period->launch_count; i++)
		counts[period->launches[i]]++;
	for (uint32_t p = 0; p < period->place_count; p++) {
		for (t = 0; t < thread_count; t++)
			if (threads[t].thread_id == period->places[p].thread_id)
				break;
		if (t == THREADS_MAX)
			continue;
		if (t == thread_count) {
			threads[thread_count].thread_id = period->places[p].thread_id;
			threads[thread_count++].count = 0;
		}
		threads[t].count += counts[p];
		if (threads[t].count > threads[best].count)
			best = t;
	}
	return threads[best].thread_id;
}

/* Returns 0 or -ENOMEM. */
static int search(struct launch_period *period)
{
	uint32_t *own = calloc(period->launch_count, sizeof(*own)), thread_id, count = 0, marker;
	uint32_t *counts = calloc(period->place_count, sizeof(*counts));
	int error = -ENOMEM;

	if (!own || !counts)
		goto out;
	thread_id = busiest_thread(period, counts);
	for (uint32_t i = 0; i < period->launch_count; i++)
		if (period->places[period->launches[i]].thread_id == thread_id)
			own[count++] = period->launches[i];
	error = xt_period_find(own, count, period->place_count, &marker);
	if (!error && marker != XT_PERIOD_NONE) {
		period->marker = period->places[marker];
		debug_log(DEBUG_WRITER, "iterations begin with call path %u in thread %u",
			  period->marker.stack_id, period->marker.thread_id);
	}
out:
	free(own);
	free(counts);
	return error;
}

static int learn(struct launch_period *period, struct launch_place place)
{
	int error = keep_launch(period, place);

	if (error || period->launch_count < period->next_search)
		return error;
	error = search(period);
	if (period->marker.stack_id || period->launch_count == PERIOD_LAUNCHES_MAX)
		forget_launches(period);
	else
		period->next_search *= 2;
	return error;
}

uint64_t launch_period_add(struct launch_period *period, struct launch_place place,
			   uint64_t time_ns, bool *is_new)
{
	uint64_t passed_ns = period->passed_ns;

	*is_new = false;
	/* Calls without a stack do not show where they are. */
	if (!place.stack_id || period->has_failed)
		return 0;
	if (!period->marker.stack_id) {
		*is_new = true;
		period->has_failed = learn(period, place) != 0;
		if (period->has_failed)
			forget_launches(period);
		return 0;
	}
	if (place.stack_id != period->marker.stack_id ||
	    place.thread_id != period->marker.thread_id) {
		/* The program does something else now. */
		if (++period->launches_since > PERIOD_LAUNCHES_MAX)
			*period = (struct launch_period){.next_search = FIRST_SEARCH};
		return 0;
	}
	period->launches_since = 0;
	period->passed_ns = time_ns;
	return passed_ns;
}
