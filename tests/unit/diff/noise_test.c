/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is learned of the noise of many rows: drawn at random, it comes out again.
 */
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "diff/noise.h"

#define ROWS	2000
#define FREEDOM 8

static double normal(void)
{
	double u = (random() + 1.0) / (RAND_MAX + 2.0), v = random() / (RAND_MAX + 1.0);

	return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

/* A sample variance of so many values with that variance. */
static double draw_variance(double variance)
{
	double sum = 0.0;

	for (int i = 0; i < FREEDOM; i++) {
		double x = normal();

		sum += x * x;
	}
	return variance * sum / FREEDOM;
}

/* Rows that are all equally noisy: the prior is all but certain. */
static void test_equal(void **state)
{
	struct noise_sample samples[ROWS];
	struct noise noise;
	double freedom;

	(void)state;
	srandom(1);
	for (int i = 0; i < ROWS; i++)
		samples[i] = (struct noise_sample){draw_variance(4e-6), FREEDOM, 1e-6};
	assert_int_equal(noise_learn(&noise, samples, ROWS), 0);
	assert_true(noise.is_known);
	assert_true(fabs(noise.between / 3e-6 - 1.0) < 0.1);
	assert_true(noise.prior_freedom > 20.0);
	/* One that seems quiet by chance is taken to be nearly as noisy as the others. */
	assert_true(noise_variance(&noise, &(struct noise_sample){1e-8, FREEDOM, 1e-6}, &freedom) >
		    2.5e-6);
	assert_true(freedom > FREEDOM + 20.0);
}

/* Rows of very different noise: little is learned, each keeps its own. */
static void test_different(void **state)
{
	struct noise_sample samples[ROWS];
	struct noise noise;
	double freedom;

	(void)state;
	srandom(2);
	for (int i = 0; i < ROWS; i++)
		samples[i] = (struct noise_sample){draw_variance(1e-6 * exp(2.0 * normal())),
						   FREEDOM, NAN};
	assert_int_equal(noise_learn(&noise, samples, ROWS), 0);
	assert_true(noise.prior_freedom < 2.0);
	assert_true(noise_variance(&noise, &(struct noise_sample){1e-3, FREEDOM, NAN}, &freedom) >
		    5e-4);
}

/* The noise within runs tells which rows are noisy, and bounds what chance makes look quiet. */
static void test_within(void **state)
{
	struct noise_sample samples[ROWS];
	struct noise noise;
	double freedom, quiet, loud;

	(void)state;
	srandom(3);
	for (int i = 0; i < ROWS; i++) {
		double within = i % 2 ? 1e-4 : 1e-8;

		samples[i] = (struct noise_sample){draw_variance(within), FREEDOM, within};
	}
	assert_int_equal(noise_learn(&noise, samples, ROWS), 0);
	quiet = noise_variance(&noise, &(struct noise_sample){1e-8, FREEDOM, 1e-8}, &freedom);
	loud = noise_variance(&noise, &(struct noise_sample){1e-4, FREEDOM, 1e-4}, &freedom);
	assert_true(quiet < 2e-8);
	assert_true(loud > 8e-5 && loud < 2e-4);
	assert_true(noise_variance(&noise, &(struct noise_sample){0.0, FREEDOM, 1e-4}, &freedom) >=
		    1e-4);
}

static void test_few(void **state)
{
	struct noise_sample sample = {1e-6, 0.0, NAN};
	struct noise noise;
	double freedom;

	(void)state;
	assert_int_equal(noise_learn(&noise, &sample, 1), 0);
	assert_false(noise.is_known);
	noise_variance(&noise, &sample, &freedom);
	assert_true(freedom == 0.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_different),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
