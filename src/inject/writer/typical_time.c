/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/writer/typical_time.h"

#include <string.h>

uint64_t typical_time_median_ns(const struct typical_time *typical)
{
	return typical->count < TYPICAL_TIMES_MIN ? 0 : typical->sorted_ns[typical->count / 2];
}

/* The first place whose time is not less. */
static uint32_t place_of(const struct typical_time *typical, uint64_t time_ns)
{
	uint32_t low = 0, high = typical->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (typical->sorted_ns[middle] < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void forget_oldest(struct typical_time *typical)
{
	uint32_t place = place_of(typical, typical->latest_ns[typical->oldest]);

	typical->count--;
	memmove(&typical->sorted_ns[place], &typical->sorted_ns[place + 1],
		(typical->count - place) * sizeof(*typical->sorted_ns));
}

void typical_time_add(struct typical_time *typical, uint64_t time_ns)
{
	uint32_t place;

	if (typical->count == TYPICAL_TIMES)
		forget_oldest(typical);
	place = place_of(typical, time_ns);
	memmove(&typical->sorted_ns[place + 1], &typical->sorted_ns[place],
		(typical->count - place) * sizeof(*typical->sorted_ns));
	typical->sorted_ns[place] = time_ns;
	typical->count++;
	typical->latest_ns[typical->oldest] = time_ns;
	typical->oldest = (typical->oldest + 1) % TYPICAL_TIMES;
}
