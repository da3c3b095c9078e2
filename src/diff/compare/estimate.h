/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates and tests the difference between the two sides, for the values of one row or of a sum
 * of rows.
 */
#ifndef XT_DIFF_ESTIMATE_H
#define XT_DIFF_ESTIMATE_H

#include "diff/compare/comparison.h"

/* Arrays have one element for each run, in one allocation. */
struct run_values {
	double *x;	 /* the tested value: logarithm, or ratio to the mean; NAN: missing */
	double *means;	 /* mean for one iteration; 0 if the run does not have the row */
	double *typical; /* the same without outliers; x is computed from it */

	double *counts; /* number for one iteration */
	double *wholes; /* number in the whole run, including warm-up */
	double within;	/* mean variance of x within runs; NAN: unknown */
	enum level level;
	enum metric metric;
	bool is_log;  /* x is a logarithm; false if a run has a value of zero */
	bool is_time; /* measured time: equal values in all runs do not make it exact */

	bool keep_common; /* input of run_values_take(): do not remove the common factor */
	bool has_common;  /* x varies with the common factor of all GPU times; remove it */
};

/* Allocates for a comparison. Free it with run_values_free(). */
void run_values_init(struct run_values *values, const struct comparison *c);
void run_values_free(struct run_values *values);

/* Takes the sum of some rows of one level. */
void run_values_take(struct run_values *values, const struct comparison *c, enum metric metric,
		     const struct comparison_row *const *rows, size_t count);

#define EXACT_VARIANCE 1e-14 /* at most rounding: the runs are equal */

/* The estimated difference between the sides. */
struct estimate {
	double difference; /* in the scale of run_values.x */
	double factor;	   /* variance of the difference / variance of one run */
	struct noise_sample sample;
};

/*
 * Estimate the difference. prior is the variance of a run that is expected in advance. It limits
 * how far the slope against the common factor may differ from 1.
 */
void estimate_make(struct estimate *estimate, const struct comparison *c,
		   const struct run_values *values, double prior);

/*
 * Computes the effect of a row from its estimate and the noise of its family. weight is the share
 * of the error rate that this row gets.
 */
void effect_from_estimate(struct effect *effect, const struct comparison *c,
			  const struct run_values *values, const struct estimate *estimate,
			  const struct noise *noise, double weight);

/*
 * Computes the effect from these runs alone, without a family. Uses the larger p-value of Student's
 * t and of a permutation test. Accounts for trends over time if the start times of the runs are
 * known.
 */
void effect_from_runs(struct effect *effect, const struct comparison *c,
		      const struct run_values *values);

#endif
