/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of 64-bit values with logarithmic buckets, for percentiles with an error below 1 %.
 *
 * Each value below 128 has its own bucket. Above that, each power of two is divided into 64
 * buckets. The middle of a bucket differs from any value in it by at most 1/128. Memory grows with
 * the number of powers of two in use, at 512 bytes each.
 */
#ifndef XT_MERGE_HISTOGRAM_H
#define XT_MERGE_HISTOGRAM_H

#include <stdint.h>

struct pack;

#define HISTOGRAM_BLOCK_BUCKETS 64
#define HISTOGRAM_BLOCKS	59
#define HISTOGRAM_BARS_MAX	12

/* Zeros are an empty one. */
struct histogram {
	uint64_t *blocks[HISTOGRAM_BLOCKS]; /* HISTOGRAM_BLOCK_BUCKETS counts each; NULL: zeros */
};

/* Adds a value. */
void histogram_add(struct histogram *histogram, uint64_t value);

/* Moves the counts of `from`, which becomes empty. Cannot fail. */
void histogram_move(struct histogram *histogram, struct histogram *from);

void histogram_free(struct histogram *histogram);

/* About the rank-th smallest value, counted from 1, between min and max. */
uint64_t histogram_value(const struct histogram *histogram, uint64_t rank, uint64_t min,
			 uint64_t max);

/*
 * Stores the number of values in each of up to HISTOGRAM_BARS_MAX ranges of equal ratio between min
 * and max. Returns the number of ranges. There are fewer if the buckets are not fine enough.
 */
uint32_t histogram_bars(const struct histogram *histogram, uint64_t min, uint64_t max,
			uint64_t bars[HISTOGRAM_BARS_MAX]);

/* Durations of one kind. Zeros are none. */
struct durations {
	uint64_t count, total_ns;
	uint64_t min_ns, max_ns; /* valid if count is not 0 */
	struct histogram histogram;
};

void durations_add(struct durations *durations, uint64_t ns);

/* Adds those of `from`. Its histogram becomes empty. */
void durations_join(struct durations *durations, struct durations *from);

/* Writes the durations, or reads them into empty ones. */
void durations_pack(struct durations *durations, struct pack *pack);

/* The duration that a half, or 99 %, of them do not exceed; exact to 1 %. */
uint64_t durations_p50_ns(const struct durations *durations);
uint64_t durations_p99_ns(const struct durations *durations);

/*
 * Histogram over time with a fixed number of bins. The bin width doubles as the covered time grows.
 *
 * Times may be added in any order. Bins are a power of two of ns wide and start at multiples of
 * their width, so doubling merges two neighbours and sums stay exact.
 */

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
