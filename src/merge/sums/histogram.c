/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram with logarithmic buckets.
 */
#include "merge/sums/histogram.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/base/pack.h"

#define BUCKETS	     (HISTOGRAM_BLOCKS * HISTOGRAM_BLOCK_BUCKETS)
#define BUCKET_RATIO (1 + 1.0 / 64) /* of a bucket's bounds, at most */

static uint32_t bucket_of(uint64_t value)
{
	uint32_t shift = value < 64 ? 0 : 57 - (uint32_t)__builtin_clzll(value);

	return shift * 64 + (uint32_t)(value >> shift);
}

/* The middle of a bucket. */
static uint64_t bucket_value(uint32_t bucket)
{
	uint32_t shift = bucket < 128 ? 0 : bucket / 64 - 1;
	uint64_t low = (uint64_t)(bucket - shift * 64) << shift;

	return shift ? low + ((uint64_t)1 << (shift - 1)) : low;
}

static uint64_t count_of(const struct histogram *histogram, uint32_t bucket)
{
	const uint64_t *block = histogram->blocks[bucket / HISTOGRAM_BLOCK_BUCKETS];

	return block ? block[bucket % HISTOGRAM_BLOCK_BUCKETS] : 0;
}

static uint64_t clamp(uint64_t value, uint64_t min, uint64_t max)
{
	return value < min ? min : value > max ? max : value;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	uint32_t bucket = bucket_of(value);
	uint64_t **block = &histogram->blocks[bucket / HISTOGRAM_BLOCK_BUCKETS];

	if (!*block)
		*block = xt_calloc(HISTOGRAM_BLOCK_BUCKETS, sizeof(**block));
	(*block)[bucket % HISTOGRAM_BLOCK_BUCKETS]++;
}

void histogram_move(struct histogram *histogram, struct histogram *from)
{
	for (uint32_t b = 0; b < HISTOGRAM_BLOCKS; b++) {
		uint64_t *block = histogram->blocks[b], *more = from->blocks[b];

		from->blocks[b] = NULL;
		if (!block)
			histogram->blocks[b] = more;
		if (!block || !more)
			continue;
		for (uint32_t i = 0; i < HISTOGRAM_BLOCK_BUCKETS; i++)
			block[i] += more[i];
		free(more);
	}
}

static void histogram_pack(struct histogram *histogram, struct pack *pack)
{
	uint64_t used = 0; /* bit for each block */

	for (uint32_t b = 0; b < HISTOGRAM_BLOCKS; b++)
		used |= (uint64_t)(histogram->blocks[b] != NULL) << b;
	PACK(pack, used);
	for (uint32_t b = 0; b < HISTOGRAM_BLOCKS; b++) {
		if (!(used >> b & 1) || pack->error)
			continue;
		if (pack->is_reading)
			histogram->blocks[b] =
				xt_calloc(HISTOGRAM_BLOCK_BUCKETS, sizeof(*histogram->blocks[b]));
		pack_bytes(pack, histogram->blocks[b],
			   HISTOGRAM_BLOCK_BUCKETS * sizeof(*histogram->blocks[b]));
	}
}

void histogram_free(struct histogram *histogram)
{
	for (uint32_t b = 0; b < HISTOGRAM_BLOCKS; b++)
		free(histogram->blocks[b]);
	*histogram = (struct histogram){0};
}

uint64_t histogram_value(const struct histogram *histogram, uint64_t rank, uint64_t min,
			 uint64_t max)
{
	uint32_t bucket = 0;
	uint64_t seen = 0;

	while (bucket < BUCKETS - 1 && (seen += count_of(histogram, bucket)) < rank)
		bucket++;
	return clamp(bucket_value(bucket), min, max);
}

uint32_t histogram_bars(const struct histogram *histogram, uint64_t min, uint64_t max,
			uint64_t bars[HISTOGRAM_BARS_MAX])
{
	double from = log((double)(min ? min : 1)), span = log((double)(max ? max : 1)) - from;
	double fine = span / log(BUCKET_RATIO);
	uint32_t count = fine < HISTOGRAM_BARS_MAX ? (uint32_t)fine + 1 : HISTOGRAM_BARS_MAX;

	memset(bars, 0, HISTOGRAM_BARS_MAX * sizeof(*bars));
	for (uint32_t bucket = bucket_of(min); bucket <= bucket_of(max); bucket++) {
		uint64_t value = clamp(bucket_value(bucket), min ? min : 1, max ? max : 1);
		double place = span > 0 ? (log((double)value) - from) / span * count : 0;
		uint32_t bar = place < count ? (uint32_t)place : count - 1;

		bars[bar] += count_of(histogram, bucket);
	}
	return count;
}

void durations_add(struct durations *durations, uint64_t ns)
{
	histogram_add(&durations->histogram, ns);
	durations->min_ns = durations->count ? smaller(durations->min_ns, ns) : ns;
	durations->max_ns = larger(durations->max_ns, ns);
	durations->count++;
	durations->total_ns += ns;
}

void durations_join(struct durations *durations, struct durations *from)
{
	durations->min_ns =
		durations->count ? smaller(durations->min_ns, from->min_ns) : from->min_ns;
	durations->max_ns = larger(durations->max_ns, from->max_ns);
	durations->count += from->count;
	durations->total_ns += from->total_ns;
	histogram_move(&durations->histogram, &from->histogram);
}

void durations_pack(struct durations *durations, struct pack *pack)
{
	PACK(pack, durations->count);
	PACK(pack, durations->total_ns);
	PACK(pack, durations->min_ns);
	PACK(pack, durations->max_ns);
	histogram_pack(&durations->histogram, pack);
}

static uint64_t value_at(const struct durations *durations, uint64_t rank)
{
	return histogram_value(&durations->histogram, rank, durations->min_ns, durations->max_ns);
}

uint64_t durations_p50_ns(const struct durations *durations)
{
	return value_at(durations, durations->count - durations->count / 2);
}

uint64_t durations_p99_ns(const struct durations *durations)
{
	return value_at(durations, durations->count - durations->count / 100);
}

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
