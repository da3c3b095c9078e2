/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributions and tests as pure functions, and run-to-run noise. A few runs measure the noise of
 * one path poorly, but all paths together show how noisy paths are. Each path's variance is shrunk
 * towards that (empirical Bayes).
 */
#ifndef XT_DIFF_STATISTICS_H
#define XT_DIFF_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

/* P(|T| >= |t|) of Student's t distribution. dof may be INFINITY. */
double student_t_p_value(double t, double dof);

/* The t with P(|T| >= t) = p. */
double student_t_quantile(double p, double dof);

/* First and second derivative of log gamma(x), x > 0, and the inverse of trigamma(). */
double digamma(double x);
double trigamma(double x);
double trigamma_inverse(double y);

#define PERMUTATIONS_MAX 20000 /* draw this many of a larger number */

/* Binomial coefficient of n and k, at most PERMUTATIONS_MAX. */
size_t permutation_count(size_t n, size_t k);

/*
 * Two-sided permutation test of the difference of means. Uses all assignments of the values to the
 * sides, or a sample drawn with a fixed seed.
 */
double permutation_p(const double *values, size_t first_count, size_t count);

/*
 * Confidence interval of the second mean minus the first: the shifts that this test does not reject
 * at alpha. alpha * permutation_count() must be at least 2.
 */
void permutation_interval(const double *values, size_t first_count, size_t count, double alpha,
			  double *low_out, double *high_out);

/*
 * Adjusts p-values in place with the weighted Holm procedure. weights are positive and adds up to
 * 1.
 */
void holm_adjust(double *p, const double *weights, size_t count);

/*
 * Learned from a family of rows. The prior variance between runs of a row with variance v within
 * runs is scale * (v + between). It has prior_dof degrees of freedom.
 */
struct noise {
	bool is_known;
	double between;
	double scale;
	double prior_dof; /* INFINITY: all rows have the prior variance */
	/* Set by the owner of the rows, not by noise_learn(). */
	double varying_share; /* share of rows assumed to vary between runs */
	double varying_count; /* number of these rows */
};

/* The noise of one row. */
struct noise_sample {
	double variance; /* between runs, around the means of the sides */
	double dof;	 /* degrees of freedom of variance */
	double within;	 /* mean variance of the mean of a run; NAN: unknown */
};

/* Learn from the samples of a family. */
void noise_learn(struct noise *noise, const struct noise_sample *samples, size_t count);

/* The variance of a row between runs, and its degrees of freedom. */
double noise_variance(const struct noise *noise, const struct noise_sample *sample,
		      double *dof_out);

#endif
