/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives pauses from the switches in a log. Until pauses_index(), a row is a switch: from_ns is
 * its time, and until_ns tells whether it turned recording on.
 */
#include "merge/read/pauses.h"

#include "base/memory.h"
#include "log/base/compare.h"

void pauses_add(struct pauses *pauses, uint64_t time_ns, bool is_on)
{
	list_append(*pauses, (struct pause){time_ns, is_on});
}

void pauses_leave_out(struct pauses *pauses, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t last_ns = 0;
	bool is_on = true;
	size_t kept = 0;

	for (size_t i = 0; i < pauses->count; i++) {
		const struct pause change = pauses->list[i];

		if (change.from_ns > until_ns) {
			pauses->list[kept++] = change;
		} else if (change.from_ns >= last_ns) {
			last_ns = change.from_ns;
			is_on = change.until_ns;
		}
	}
	pauses->count = kept;
	pauses_add(pauses, from_ns, false);
	if (!is_on)
		return;
	pauses_add(pauses, until_ns, true);
}

COMPARE_BY(compare_times, struct pause, UP(from_ns) UP(until_ns))

void pauses_index(struct pauses *pauses)
{
	size_t count = 0;
	bool is_paused = false;

	SORT(pauses->list, pauses->count, compare_times);
	for (size_t i = 0; i < pauses->count; i++) {
		const struct pause change = pauses->list[i];
		bool is_on = change.until_ns;

		if (is_on && is_paused)
			pauses->list[count - 1].until_ns = change.from_ns;
		else if (!is_on && !is_paused)
			pauses->list[count++] = (struct pause){change.from_ns, UINT64_MAX};
		is_paused = !is_on;
	}
	pauses->count = count;
}

void pauses_free(struct pauses *pauses)
{
	free(pauses->list);
	*pauses = (struct pauses){0};
}

/* Returns the number of pauses that had ended at that time. */
static size_t pauses_ended(const struct pauses *pauses, uint64_t time_ns)
{
	return FIRST_NOT(i, 0, pauses->count, pauses->list[i].until_ns <= time_ns);
}

bool pauses_within(const struct pauses *pauses, uint64_t from_ns, uint64_t until_ns)
{
	size_t first = from_ns ? pauses_ended(pauses, from_ns - 1) : 0;

	return first < pauses->count && pauses->list[first].from_ns <= until_ns;
}

uint64_t pauses_between_ns(const struct pauses *pauses, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t sum_ns = 0;

	for (size_t i = pauses_ended(pauses, from_ns);
	     i < pauses->count && pauses->list[i].from_ns < until_ns; i++) {
		const struct pause *pause = &pauses->list[i];
		uint64_t begin_ns = pause->from_ns > from_ns ? pause->from_ns : from_ns;
		uint64_t end_ns = pause->until_ns < until_ns ? pause->until_ns : until_ns;

		sum_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
	}
	return sum_ns;
}

uint64_t pauses_total_ns(const struct pauses *pauses, uint64_t end_ns)
{
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < pauses->count; i++) {
		uint64_t until_ns = pauses->list[i].until_ns;

		if (until_ns == UINT64_MAX)
			until_ns =
				end_ns > pauses->list[i].from_ns ? end_ns : pauses->list[i].from_ns;
		sum_ns += until_ns - pauses->list[i].from_ns;
	}
	return sum_ns;
}
