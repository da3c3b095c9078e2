/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much runs differ by themselves. Few runs tell little of the noise of one path, but those of all paths
 * together tell how noisy paths are: each path's variance is drawn to that (empirical Bayes).
 */
#ifndef XT_DIFF_NOISE_H
#define XT_DIFF_NOISE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What is learned of a family of rows: a row whose mean has a variance of v within its runs is taken to
 * have scale * (v + between) between them, as sure as if that were known of prior_freedom runs.
 */
struct noise {
	bool is_known;
	double between;
	double scale;
	double prior_dof; /* INFINITY: rows do not differ in it */
	/* Not learned here: whoever has the rows sets these. */
	double varying_share; /* of the rows, those that are taken to differ from run to run */
	double varying_count; /* as many rows are that */
};

/* Of one row: from run to run (of the logarithm, or of the value), and within runs. */
struct noise_sample {
	double variance; /* around the means of the sides */
	double dof;	 /* its degrees of freedom */
	double within;	 /* mean variance of a run's mean; NAN: not known */
};

/* Learns of the samples of a family. 0 or -ENOMEM. */
int noise_learn(struct noise *noise, const struct noise_sample *samples, size_t count);

/* The variance of a row from run to run, and its degrees of freedom. */
double noise_variance(const struct noise *noise, const struct noise_sample *sample,
		      double *dof_out);

#endif
