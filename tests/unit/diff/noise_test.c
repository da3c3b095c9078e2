/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learning noise from random samples.
 */
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "diff/stats/statistics.h"

#define ROWS 2000
#define DOF  8

static double normal(void)
{
	double u = (random() + 1.0) / (RAND_MAX + 2.0), v = random() / (RAND_MAX + 1.0);

	return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

/* Draw a sample variance. */
static double draw_variance(double variance, int dof)
{
	double sum = 0.0;

	for (int i = 0; i < dof; i++) {
		double x = normal();

		sum += x * x;
	}
	return variance * sum / dof;
}

/* Equally noisy rows give a strong prior. */
static void learns_strong_prior_from_equal_rows(void **state)
{
	struct noise_sample samples[ROWS];
	struct noise noise;
	double dof;

	(void)state;
	srandom(1);
	for (int i = 0; i < ROWS; i++)
		samples[i] = (struct noise_sample){draw_variance(4e-6, DOF), DOF, 1e-6};
	noise_learn(&noise, samples, ROWS);
	assert_true(noise.is_known);
	assert_true(fabs(noise.between / 3e-6 - 1.0) < 0.1);
	assert_true(noise.prior_dof > 20.0);
	/* A row that is quiet by chance gets nearly the prior variance. */
	assert_true(noise_variance(&noise, &(struct noise_sample){1e-8, DOF, 1e-6}, &dof) > 2.5e-6);
	assert_true(dof > DOF + 20.0);
}

/* Rows with very different noise give a weak prior. */
static void learns_weak_prior_from_different_rows(void **state)
{
	struct noise_sample samples[ROWS];
	struct noise noise;
	double dof;

	(void)state;
	srandom(2);
	for (int i = 0; i < ROWS; i++)
		samples[i] = (struct noise_sample){draw_variance(1e-6 * exp(2.0 * normal()), DOF),
						   DOF, NAN};
	noise_learn(&noise, samples, ROWS);
	assert_true(noise.prior_dof < 2.0);
	assert_true(noise_variance(&noise, &(struct noise_sample){1e-3, DOF, NAN}, &dof) > 5e-4);
}

/* The noise within runs predicts which rows are noisy, and is a lower limit. */
static void uses_noise_within_runs(void **state)
{
	struct noise_sample samples[ROWS];
	struct noise noise;
	double dof, quiet, loud;

	(void)state;
	srandom(3);
	for (int i = 0; i < ROWS; i++) {
		double within = i % 2 ? 1e-4 : 1e-8;

		samples[i] = (struct noise_sample){draw_variance(within, DOF), DOF, within};
	}
	noise_learn(&noise, samples, ROWS);
	quiet = noise_variance(&noise, &(struct noise_sample){1e-8, DOF, 1e-8}, &dof);
	loud = noise_variance(&noise, &(struct noise_sample){1e-4, DOF, 1e-4}, &dof);
	assert_true(quiet < 2e-8);
	assert_true(loud > 8e-5 && loud < 2e-4);
	assert_true(noise_variance(&noise, &(struct noise_sample){0.0, DOF, 1e-4}, &dof) >= 1e-4);
}

/*
 * Small families with two runs per side and different noise: their variances hardly show the
 * differences. The rate of false positives must still be at most the p-value.
 */
static void keeps_error_rate_with_two_runs(void **state)
{
	enum { FAMILIES = 2000, FEW_ROWS = 60, FEW = 2 };
	size_t rare = 0, rarer = 0;

	(void)state;
	srandom(4);
	for (int f = 0; f < FAMILIES; f++) {
		struct noise_sample samples[FEW_ROWS];
		double truth[FEW_ROWS];
		struct noise noise;

		for (int i = 0; i < FEW_ROWS; i++) {
			truth[i] = 1e-6 * exp(0.7 * normal());
			samples[i] = (struct noise_sample){draw_variance(truth[i], FEW), FEW, NAN};
		}
		noise_learn(&noise, samples, FEW_ROWS);
		for (int i = 0; i < FEW_ROWS; i++) {
			double dof, variance = noise_variance(&noise, &samples[i], &dof), p;

			p = student_t_p_value(normal() * sqrt(truth[i] / variance), dof);
			rare += p < 1e-2;
			rarer += p < 1e-4;
		}
	}
	print_message("p below 0.01 in %.2g, below 0.0001 in %.2g of differences by chance\n",
		      (double)rare / FAMILIES / FEW_ROWS, (double)rarer / FAMILIES / FEW_ROWS);
	assert_true((double)rare / FAMILIES / FEW_ROWS < 1.2e-2);
	assert_true((double)rarer / FAMILIES / FEW_ROWS < 2e-4);
}

static void learns_nothing_from_few_rows(void **state)
{
	struct noise_sample sample = {1e-6, 0.0, NAN};
	struct noise noise;
	double dof;

	(void)state;
	noise_learn(&noise, &sample, 1);
	assert_false(noise.is_known);
	noise_variance(&noise, &sample, &dof);
	assert_true(dof == 0.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learns_strong_prior_from_equal_rows),
		cmocka_unit_test(learns_weak_prior_from_different_rows),
		cmocka_unit_test(uses_noise_within_runs),
		cmocka_unit_test(learns_nothing_from_few_rows),
		cmocka_unit_test(keeps_error_rate_with_two_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
