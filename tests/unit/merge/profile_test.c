/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run profile: the batch of a time, and the statistics of sums by batch.
 */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/number_format.h"
#include "merge/profile/profile.h"

#define ITERATIONS 107
#define WARMUP	   3

static double uniform(void)
{
	return (random() + 0.5) / ((double)RAND_MAX + 1.0);
}

static double normal(void)
{
	return sqrt(-2.0 * log(uniform())) * cos(2.0 * M_PI * uniform());
}

static void finds_the_batch_of_a_time(void **state)
{
	static uint64_t starts_ns[ITERATIONS];
	struct windows w = {.starts_ns = starts_ns,
			    .found_count = ITERATIONS,
			    .end_ns = 1000 + ITERATIONS * 10,
			    .warmup_count = WARMUP,
			    .used_count = ITERATIONS - WARMUP,
			    .batch_count = PROFILE_BATCHES};
	uint32_t counts[PROFILE_BATCHES] = {0};
	int before = 0;

	(void)state;
	for (int i = 0; i < ITERATIONS; i++)
		starts_ns[i] = 1000 + (uint64_t)i * 10;
	assert_int_equal(windows_batch(&w, 999), -1);
	assert_int_equal(windows_batch(&w, w.end_ns), -1);
	for (int i = 0; i < ITERATIONS; i++) {
		int batch = windows_batch(&w, starts_ns[i] + 9);

		assert_int_equal(batch, windows_batch(&w, starts_ns[i]));
		if (i < WARMUP) {
			assert_int_equal(batch, -1);
			continue;
		}
		assert_true(batch >= before && batch <= before + 1);
		before = batch;
		counts[batch]++;
	}
	assert_int_equal(before, PROFILE_BATCHES - 1);
	for (int b = 0; b < PROFILE_BATCHES; b++)
		assert_true(counts[b] == 3 || counts[b] == 4);
	/* The lookup accepts times in any order. */
	for (int i = 0; i < 1000; i++) {
		uint64_t time_ns = 900 + (uint64_t)random() % 1300;
		struct windows fresh = w;

		fresh.recent = 0;
		assert_int_equal(windows_batch(&w, time_ns), windows_batch(&fresh, time_ns));
	}
}

static const double *no_factors(void)
{
	static double factors[PROFILE_BATCHES];

	for (int b = 0; b < PROFILE_BATCHES; b++)
		factors[b] = 1.0;
	return factors;
}

static struct profile_stats stats_of(const double *values, double count)
{
	struct subject s = {0};

	for (int b = 0; b < PROFILE_BATCHES; b++) {
		s.values[b] = values[b];
		s.counts[b] = count;
	}
	return profile_stats(&s, PROFILE_BATCHES, no_factors());
}

/*
 * The estimated standard error agrees with the actual error of the mean, with and without
 * autocorrelation.
 */
static void estimates_standard_errors(void **state)
{
	static const double correlations[] = {0.0, 0.6};

	(void)state;
	srandom(1);
	for (int c = 0; c < 2; c++) {
		double told = 0.0, had = 0.0;

		for (int i = 0; i < 4000; i++) {
			double values[PROFILE_BATCHES], x = normal(), r = correlations[c];
			struct profile_stats stats;

			for (int b = 0; b < PROFILE_BATCHES; b++) {
				values[b] = 1000.0 + x;
				x = r * x + sqrt(1.0 - r * r) * normal();
			}
			stats = stats_of(values, 4.0);
			told += stats.value.error * stats.value.error;
			had += (stats.value.typical - 1000.0) * (stats.value.typical - 1000.0);
			assert_true(fabs(stats.each.mean * 4.0 - stats.value.mean) < 1e-9);
			assert_true(stats.count.error == 0.0);
		}
		/*
		 * Ignoring autocorrelation would estimate a quarter of the second error. 32 values
		 * are too few to estimate all of it.
		 */
		assert_true(told > (c ? 0.65 : 0.95) * had && told < 1.4 * had);
	}
}

static void clamps_outliers(void **state)
{
	double values[PROFILE_BATCHES];
	struct profile_stats stats;

	(void)state;
	srandom(2);
	for (int b = 0; b < PROFILE_BATCHES; b++)
		values[b] = 100.0 + normal();
	values[7] = 3300.0;
	stats = stats_of(values, 1.0);
	assert_true(stats.value.mean > 195.0);
	assert_true(stats.value.typical > 99.0 && stats.value.typical < 101.0);
	assert_true(stats.value.error < 1.0);
	/* A batch with more items is no outlier if each item takes the usual time. */
	for (int b = 0; b < PROFILE_BATCHES; b++)
		values[b] = 100.0;
	stats = profile_stats(&(struct subject){.values = {[3] = 700.0, [4] = 100.0},
						.counts = {[3] = 7.0, [4] = 1.0}},
			      PROFILE_BATCHES, no_factors());
	assert_true(fabs(stats.value.typical - stats.value.mean) < 1e-9);
	assert_true(fabs(stats.each.mean - 100.0) < 1e-9);
}

/* The common factor is found even if one path differs. */
static void finds_the_common_factor(void **state)
{
	struct subjects subjects = {0};
	double factors[PROFILE_BATCHES];

	(void)state;
	for (uint32_t p = 0; p < 40; p++) {
		uint32_t place = subjects_index(&subjects, PROFILE_PATH, p);

		assert_int_equal(place, p);
		for (int b = 0; b < PROFILE_BATCHES; b++)
			subject_add(&subjects.list[place], b, 1.0,
				    (p ? 100.0 + p : 5000.0 + 400.0 * b) * (b < 16 ? 1.0 : 1.1),
				    1.0);
	}
	profile_factors(&subjects, PROFILE_BATCHES, factors);
	assert_true(fabs(factors[20] / factors[3] - 1.1) < 1e-9);
	/* Too few paths have no common factor. */
	subjects.count = 5;
	profile_factors(&subjects, PROFILE_BATCHES, factors);
	assert_true(factors[20] == 1.0);
	subjects_free(&subjects);
}

static void masks_numbers(void **state)
{
	char text[] = "step 12 of 300, v2";

	(void)state;
	xt_mask_numbers(text);
	assert_string_equal(text, "step # of #, v#");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_batch_of_a_time),
		cmocka_unit_test(estimates_standard_errors),
		cmocka_unit_test(clamps_outliers),
		cmocka_unit_test(finds_the_common_factor),
		cmocka_unit_test(masks_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
