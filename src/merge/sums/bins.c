/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bins over time.
 */
#include "merge/sums/bins.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"

void bins_init(struct bins *bins, unsigned series_count)
{
	*bins = (struct bins){.series_count = series_count, .first = 1};
	bins->values = xt_calloc((size_t)series_count * BINS_COUNT, sizeof(*bins->values));
}

void bins_free(struct bins *bins)
{
	free(bins->values);
	*bins = (struct bins){.first = 1};
}

/* Double the bin width. */
static void widen(struct bins *bins, bool is_raised)
{
	uint64_t first = bins->first >> 1;

	for (unsigned s = 0; s < bins->series_count; s++) {
		uint64_t *values = &bins->values[(size_t)s * BINS_COUNT];

		for (uint32_t b = 0; b < bins_used(bins); b++) {
			uint64_t value = values[b];
			uint64_t *into = &values[((bins->first + b) >> 1) - first];

			/* The target lies at or before the bin just read. */
			values[b] = 0;
			if (!is_raised)
				*into += value;
			else if (value > *into)
				*into = value;
		}
	}
	bins->first = first;
	bins->last >>= 1;
	bins->width_bits++;
}

/* Shift the values so that they begin with an earlier bin. */
static void begin_earlier(struct bins *bins, uint64_t first)
{
	uint64_t shift = bins->first - first;

	for (unsigned s = 0; s < bins->series_count; s++) {
		uint64_t *values = &bins->values[(size_t)s * BINS_COUNT];

		memmove(values + shift, values, (BINS_COUNT - shift) * sizeof(*values));
		memset(values, 0, shift * sizeof(*values));
	}
	bins->first = first;
}

/* Widen and shift until the bins cover [from_ns, until_ns]. */
static void cover(struct bins *bins, uint64_t from_ns, uint64_t until_ns, bool is_raised)
{
	uint64_t first, last;

	if (!bins_used(bins)) {
		while ((until_ns >> bins->width_bits) - (from_ns >> bins->width_bits) >= BINS_COUNT)
			bins->width_bits++;
		bins->first = from_ns >> bins->width_bits;
		bins->last = until_ns >> bins->width_bits;
		return;
	}
	for (;;) {
		first = smaller(bins->first, from_ns >> bins->width_bits);
		last = larger(bins->last, until_ns >> bins->width_bits);
		if (last - first < BINS_COUNT)
			break;
		widen(bins, is_raised);
	}
	if (first < bins->first)
		begin_earlier(bins, first);
	bins->last = last;
}

void bins_add(struct bins *bins, unsigned series, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t *values = &bins->values[(size_t)series * BINS_COUNT];

	if (until_ns <= from_ns)
		return;
	cover(bins, from_ns, until_ns - 1, false);
	while (from_ns < until_ns) {
		uint64_t bin = from_ns >> bins->width_bits;
		uint64_t last_ns =
			smaller((bin << bins->width_bits) + (((uint64_t)1 << bins->width_bits) - 1),
				until_ns - 1);

		values[bin - bins->first] += last_ns - from_ns + 1;
		from_ns = last_ns + 1;
	}
}

void bins_raise(struct bins *bins, unsigned series, uint64_t from_ns, uint64_t until_ns,
		uint64_t level)
{
	uint64_t *values = &bins->values[(size_t)series * BINS_COUNT];
	uint64_t from, until;

	if (until_ns < from_ns)
		return;
	cover(bins, from_ns, until_ns, true);
	from = (from_ns >> bins->width_bits) - bins->first;
	until = (until_ns >> bins->width_bits) - bins->first;
	for (uint64_t b = from; b <= until; b++)
		values[b] = larger(values[b], level);
}
