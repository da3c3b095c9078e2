/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimate and test the difference between the two sides.
 */
#ifndef XT_DIFF_ESTIMATE_H
#define XT_DIFF_ESTIMATE_H

#include "diff/compare/run_values.h"

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
