/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened when, in a fixed number of bins whose width grows with the time that they cover.
 *
 * Times may come in any order. Bins are a power of two of ns wide and begin at multiples of it, so
 * two of them become one when more time is to be covered; sums stay exact.
 */
#ifndef XT_MERGE_BINS_H
#define XT_MERGE_BINS_H

#include <stdint.h>

#define BINS_COUNT 4096 /* once it is filled, more than half of them are in use */

struct bins {
	uint64_t *values; /* of each series, BINS_COUNT */
	unsigned series_count;
	unsigned width_bits; /* a bin is 1 << width_bits ns */
	uint64_t first; /* bin 0 begins at 0 ns: the first bin in use, with which values begins … */
	uint64_t last; /* … and the last; first > last: none is in use */
};

/* 0 or -ENOMEM. */
int bins_init(struct bins *bins, unsigned series_count);
void bins_free(struct bins *bins);

/* The series has [from_ns, until_ns): each bin gets what of it is in the bin. */
void bins_add(struct bins *bins, unsigned series, uint64_t from_ns, uint64_t until_ns);

/* The series was at that level in [from_ns, until_ns]: each bin keeps the highest. A series is
 * either added to or raised. */
void bins_raise(struct bins *bins, unsigned series, uint64_t from_ns, uint64_t until_ns,
		uint64_t level);

/* How many bins are in use. */
static inline uint32_t bins_used(const struct bins *bins)
{
	return bins->first > bins->last ? 0 : (uint32_t)(bins->last - bins->first + 1);
}

#endif
