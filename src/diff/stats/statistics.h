/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributions and tests: pure functions of numbers.
 */
#ifndef XT_DIFF_STATISTICS_H
#define XT_DIFF_STATISTICS_H

#include <stddef.h>

/* P(|T| >= |t|) of Student's t; freedom may be INFINITY. */
double student_t_p_value(double t, double dof);

/* The t that |T| exceeds with probability p. */
double student_t_quantile(double p, double dof);

/* Derivatives of the logarithm of the gamma function, x > 0; and the x at which the second is y. */
double digamma(double x);
double trigamma(double x);
double trigamma_inverse(double y);

/* The middle of a chi-squared distribution by its mean, about. */
double chi_squared_median_ratio(double dof);

struct weighted_value {
	double value;
	double weight;
};

/* Sorts the list. NAN of an empty one. */
double weighted_median(struct weighted_value *list, size_t count);
double median(double *list, size_t count); /* sorts it, too */

#define PERMUTATIONS_MAX 20000 /* of more, so many are drawn */

/* How many ways there are to choose k of n, or PERMUTATIONS_MAX if more. */
size_t permutation_count(size_t n, size_t k);

/*
 * P(difference of means at least as large in size) if which of the values belong to the first side were by
 * chance: over all ways to divide them, or many drawn by a fixed seed.
 */
double permutation_p(const double *values, size_t first_count, size_t count);

/*
 * The differences of the second side's mean from the first one's that this test does not rule out at alpha: those by which the
 * second side can be moved back with a p above it. alpha * permutation_count() has to be 2 or more.
 */
void permutation_interval(const double *values, size_t first_count, size_t count, double alpha,
			  double *low_out, double *high_out);

/* Makes p-values those of Holm's step-down procedure, in place: what has more weight may be as sure with less.
 * weights add up to 1 and are more than 0. 0 or -ENOMEM. */
int holm_adjust(double *p, const double *weights, size_t count);

#endif
