/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributions against printed tables, tests against values counted by hand.
 */
#include "unit.h"

#include <math.h>

#include "diff/stats/statistics.h"
#include "log/base/compare.h"

static void near(double value, double wanted, double within)
{
	if (!(fabs(value - wanted) <= within))
		fail_msg("%.12g, not %.12g", value, wanted);
}

/* Two-sided critical values from tables of Student's t. */
static void matches_student_t_tables(void **state)
{
	static const struct {
		double p, dof, t;
	} rows[] = {
		{0.05, 1, 12.7062},	  {0.05, 8, 2.3060},  {0.01, 8, 3.3554},
		{0.001, 8, 5.0413},	  {0.05, 30, 2.0423}, {0.01, 120, 2.6174},
		{0.05, INFINITY, 1.9600},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		near(student_t_quantile(rows[i].p, rows[i].dof), rows[i].t, 5e-5 * rows[i].t);
		near(student_t_p_value(rows[i].t, rows[i].dof), rows[i].p, 1e-5);
	}
	near(student_t_p_value(0.0, 5.0), 1.0, 1e-12);
	near(student_t_p_value(-2.306, 8.0), 0.05, 1e-5);
	assert_true(isnan(student_t_p_value(1.0, 0.0)));
	/* With one degree of freedom it is the Cauchy distribution. */
	near(student_t_p_value(1e6, 1.0), 2.0 / M_PI * atan(1e-6), 1e-12);
}

static void computes_gamma_derivatives(void **state)
{
	(void)state;
	near(digamma(1.0), -0.57721566490153, 1e-10);
	near(digamma(0.5), -1.96351002602142, 1e-10);
	near(trigamma(1.0), M_PI * M_PI / 6.0, 1e-10);
	near(trigamma(0.5), M_PI * M_PI / 2.0, 1e-9);
	for (double x = 0.1; x < 1e4; x *= 3.0)
		near(trigamma_inverse(trigamma(x)) / x, 1.0, 1e-6);
}

static void computes_medians(void **state)
{
	struct weighted_value list[] = {{5.0, 1.0}, {1.0, 1.0}, {2.0, 3.0}};
	double even[] = {4.0, 1.0, 3.0, 2.0};

	(void)state;
	near(weighted_median(list, 3), 2.0, 0.0);
	near(median(even, 4), 2.5, 0.0);
	assert_true(isnan(median(even, 0)));
}

/*
 * Two against two has six assignments. The observed one and its mirror image are equally extreme.
 */
static void counts_permutations(void **state)
{
	const double apart[] = {1.0, 2.0, 8.0, 9.0};
	const double same[] = {1.0, 1.0, 1.0, 1.0};
	double many[40];

	(void)state;
	near(permutation_p(apart, 2, 4), 2.0 / 6.0, 1e-12);
	near(permutation_p(same, 2, 4), 1.0, 1e-12);
	assert_int_equal(permutation_count(10, 5), 252);
	assert_int_equal(permutation_count(40, 20), PERMUTATIONS_MAX);
	for (size_t i = 0; i < 40; i++)
		many[i] = (double)i;
	assert_true(permutation_p(many, 20, 40) < 0.001);
	for (size_t i = 0; i < 40; i++)
		many[i] = (double)(i % 2);
	assert_true(permutation_p(many, 20, 40) > 0.5);
}

/* The bounds are the shifts at which the test stops rejecting. */
static void inverts_permutation_test(void **state)
{
	const double values[] = {1.00, 1.02, 0.99, 1.01, 0.97, 1.30, 1.31, 1.28, 1.32, 1.29};
	const double hidden[] = {1.00, 1.02, 0.99, 1.01, 0.97, 1.30, 1.31, 1.01, 1.32, 1.29};
	double low, high, moved[10];

	(void)state;
	permutation_interval(values, 5, 10, 0.01, &low, &high);
	/* Two of 252 assignments separate the sides completely: p = 0.8 %. */
	near(low, 1.28 - 1.02, 1e-6);
	near(high, 1.32 - 0.97, 1e-6);
	for (int side = 0; side < 2; side++) {
		for (int beyond = 0; beyond < 2; beyond++) {
			double by = (side ? high : low) + (side == beyond ? 1e-6 : -1e-6);

			for (int i = 0; i < 10; i++)
				moved[i] = values[i] - (i < 5 ? 0.0 : by);
			assert_true((permutation_p(moved, 5, 10) > 0.01) != beyond);
		}
	}
	permutation_interval(hidden, 5, 10, 0.01, &low, &high);
	assert_true(low < 0.0 && high > 0.3);
}

static void adjusts_p_values(void **state)
{
	const double equal[] = {0.25, 0.25, 0.25, 0.25}, unequal[] = {0.9, 0.1};
	double p[] = {0.03, 0.01, 0.04, 0.005}, weighted[] = {0.009, 0.004};

	(void)state;
	holm_adjust(weighted, unequal, 2);
	near(weighted[0], 0.01, 1e-12);
	near(weighted[1], 0.01, 1e-12); /* 0.004 / 0.1 * 0.1 is less than the p-value before it */
	holm_adjust(p, equal, 4);
	near(p[3], 0.02, 1e-12);
	near(p[1], 0.03, 1e-12);
	near(p[0], 0.06, 1e-12);
	near(p[2], 0.06, 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_student_t_tables),
		cmocka_unit_test(computes_gamma_derivatives),
		cmocka_unit_test(computes_medians),
		cmocka_unit_test(counts_permutations),
		cmocka_unit_test(inverts_permutation_test),
		cmocka_unit_test(adjusts_p_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
