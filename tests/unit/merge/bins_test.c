/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bins over time: sums stay exact in any order of times, and raised bins keep the highest level.
 */
#include "unit.h"

#include <stdlib.h>

#include "merge/sums/histogram.h"

static uint64_t sum_of(const struct bins *bins, unsigned series)
{
	uint64_t sum = 0;

	for (uint32_t b = 0; b < bins_used(bins); b++)
		sum += bins->values[(size_t)series * BINS_COUNT + b];
	return sum;
}

/* The sum of the bins in [from_ns, until_ns); both must be bin edges. */
static uint64_t sum_in(const struct bins *bins, unsigned series, uint64_t from_ns,
		       uint64_t until_ns)
{
	uint64_t sum = 0;

	for (uint64_t b = from_ns >> bins->width_bits; b < until_ns >> bins->width_bits; b++)
		if (b >= bins->first && b <= bins->last)
			sum += bins->values[(size_t)series * BINS_COUNT + b - bins->first];
	return sum;
}

static void adds_one_interval(void **state)
{
	struct bins bins;

	(void)state;
	bins_init(&bins, 1);
	assert_int_equal(bins_used(&bins), 0);
	bins_add(&bins, 0, 100, 100);
	assert_int_equal(bins_used(&bins), 0);
	bins_add(&bins, 0, 100, 110);
	assert_int_equal(bins.width_bits, 0);
	assert_int_equal(bins.first, 100);
	assert_int_equal(bins_used(&bins), 10);
	assert_int_equal(sum_of(&bins, 0), 10);
	bins_free(&bins);
}

/* No bin exceeds its width, so every value is in the right bin. */
static void puts_time_into_the_right_bin(void **state)
{
	const uint64_t edge = 1u << 20;
	struct bins bins;

	(void)state;
	bins_init(&bins, 2);
	bins_add(&bins, 0, edge + 5, edge + 5000);
	bins_add(&bins, 1, 3 * edge, 3 * edge + 70);
	bins_add(&bins, 0, 7, 2000);
	bins_add(&bins, 0, 100 * edge - 9, 100 * edge + 9);
	assert_true(bins.width_bits <= 20);
	assert_int_equal(sum_of(&bins, 0), 4995 + 1993 + 18);
	assert_int_equal(sum_in(&bins, 0, 0, edge), 1993);
	assert_int_equal(sum_in(&bins, 0, edge, 2 * edge), 4995);
	assert_int_equal(sum_in(&bins, 0, 99 * edge, 100 * edge), 9);
	assert_int_equal(sum_in(&bins, 0, 100 * edge, 101 * edge), 9);
	assert_int_equal(sum_in(&bins, 1, 3 * edge, 4 * edge), 70);
	assert_int_equal(sum_of(&bins, 1), 70);
	bins_free(&bins);
}

static uint64_t random_below(uint64_t limit)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 20) % limit;
}

static void keeps_sums_in_any_order(void **state)
{
	(void)state;
	for (int round = 0; round < 50; round++) {
		uint64_t sum = 0, length = (uint64_t)1 << (10 + random_below(34));
		struct bins bins;

		bins_init(&bins, 3);
		for (int i = 0; i < 300; i++) {
			uint64_t from = random_below(length);
			uint64_t until = from + random_below(length / 16 + 1);

			bins_add(&bins, 1, from, until);
			sum += until - from;
			assert_int_equal(sum_of(&bins, 1), sum);
		}
		assert_int_equal(sum_of(&bins, 0) + sum_of(&bins, 2), 0);
		assert_true(bins_used(&bins) > BINS_COUNT / 2 - 2 || length < BINS_COUNT * 2);
		bins_free(&bins);
	}
}

static void keeps_the_highest_level(void **state)
{
	struct bins bins;

	(void)state;
	bins_init(&bins, 1);
	bins_raise(&bins, 0, 1000, 1000, 7);
	bins_raise(&bins, 0, 1000, 5000000, 3);
	assert_int_equal(bins.values[0], 7);
	assert_int_equal(bins.values[1], 3);
	bins_raise(&bins, 0, 0, 0, 9);
	assert_int_equal(bins.first, 0);
	assert_int_equal(bins.values[0], 9);
	assert_int_equal(bins.values[bins_used(&bins) - 1], 3);
	bins_free(&bins);
}

/* Extreme times are covered too. */
static void covers_extreme_times(void **state)
{
	struct bins bins;

	(void)state;
	bins_init(&bins, 1);
	bins_add(&bins, 0, 5, 6);
	bins_add(&bins, 0, UINT64_MAX - 1, UINT64_MAX);
	assert_int_equal(sum_of(&bins, 0), 2);
	bins_add(&bins, 0, 0, UINT64_MAX);
	assert_int_equal(sum_of(&bins, 0), UINT64_C(1));
	bins_free(&bins);
	bins_init(&bins, 1);
	bins_raise(&bins, 0, UINT64_MAX, UINT64_MAX, 5);
	assert_int_equal(bins_used(&bins), 1);
	assert_int_equal(bins.values[0], 5);
	bins_raise(&bins, 0, 0, UINT64_MAX, 3);
	assert_int_equal(bins.values[0], 3);
	assert_int_equal(bins.values[bins_used(&bins) - 1], 5);
	bins_free(&bins);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_one_interval),
		cmocka_unit_test(puts_time_into_the_right_bin),
		cmocka_unit_test(keeps_sums_in_any_order),
		cmocka_unit_test(keeps_the_highest_level),
		cmocka_unit_test(covers_extreme_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
