/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histogram over time with a fixed number of bins. The bin width doubles as the covered time grows.
 *
 * Times may be added in any order. Bins are a power of two of ns wide and start at multiples of
 * their width, so doubling merges two neighbours and sums stay exact.
 */
#ifndef XT_MERGE_BINS_H
#define XT_MERGE_BINS_H

#include <stdint.h>

#define BINS_COUNT 4096 /* once full, more than half of them are in use */

struct bins {
	uint64_t *values; /* BINS_COUNT values for each series */
	unsigned series_count;
	unsigned width_bits; /* a bin covers 1 << width_bits ns */
	uint64_t first;	     /* first bin in use, stored at values[0]; bin 0 starts at 0 ns */
	uint64_t last;	     /* last bin in use; if first > last, none is */
};

void bins_init(struct bins *bins, unsigned series_count);
void bins_free(struct bins *bins);

/* Adds the interval [from_ns, until_ns) to the series: each bin grows by its overlap. */
void bins_add(struct bins *bins, unsigned series, uint64_t from_ns, uint64_t until_ns);

/*
 * Raise every bin that overlaps [from_ns, until_ns] to at least this level. Use either bins_add()
 * or bins_raise() on a series, not both.
 */
void bins_raise(struct bins *bins, unsigned series, uint64_t from_ns, uint64_t until_ns,
		uint64_t level);

/* Number of bins in use. */
static inline uint32_t bins_used(const struct bins *bins)
{
	return bins->first > bins->last ? 0 : (uint32_t)(bins->last - bins->first + 1);
}

#endif
