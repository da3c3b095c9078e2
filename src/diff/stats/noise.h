/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run-to-run noise. A few runs measure the noise of one path poorly, but all paths together show
 * how noisy paths are. Each path's variance is shrunk towards that (empirical Bayes).
 */
#ifndef XT_DIFF_NOISE_H
#define XT_DIFF_NOISE_H

#include <stdbool.h>
#include <stddef.h>

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
