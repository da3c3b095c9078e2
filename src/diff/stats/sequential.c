/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequential test by repeated Student's t intervals.
 */
#include "diff/stats/sequential.h"

#include <math.h>

#include "diff/stats/statistics.h"

void run_group_add(struct run_group *group, double value)
{
	double before = value - group->mean;

	group->count++;
	group->mean += before / (double)group->count;
	group->squares += before * (value - group->mean);
}

void pooled_noise_add(struct pooled_noise *noise, const struct run_group *group)
{
	if (group->count < 2)
		return;
	noise->squares += group->squares;
	noise->dof += (double)group->count - 1.0;
}

/*
 * The noise of a test: pooled, but not less than that of the pair itself. A commit can be noisier
 * than the references.
 */
static double noise_of(const struct references *references, const struct run_pair *pair,
		       double *dof_out)
{
	struct pooled_noise own = {0}, all = references->noise;
	double variance;

	pooled_noise_add(&own, &pair->base);
	pooled_noise_add(&own, &pair->candidate);
	all.squares += own.squares;
	all.dof += own.dof;
	*dof_out = all.dof;
	if (!(all.dof > 0.0))
		return INFINITY;
	variance = all.squares / all.dof;
	if (own.dof > 0.0)
		variance = fmax(variance, own.squares / own.dof);
	return fmax(sqrt(variance), all.least);
}

/* 1/n of both groups: the variance of their difference in units of the variance of a run. */
static double spread(const struct run_group *a, const struct run_group *b)
{
	return a->count && b->count ? 1.0 / (double)a->count + 1.0 / (double)b->count : INFINITY;
}

enum nearer sequential_nearer(const struct references *references, const struct run_pair *pair,
			      double alpha)
{
	double half = (references->high.mean - references->low.mean) / 2.0, dof;
	double noise = noise_of(references, pair, &dof);
	double error = noise * sqrt(spread(&pair->base, &pair->candidate) +
				    spread(&references->low, &references->high) / 4.0);
	double above = pair->candidate.mean - pair->base.mean - half;
	/* One-sided: for a given truth, only one of the two answers is wrong. */
	double limit = student_t_quantile(2.0 * alpha, dof) * error;

	if (!isfinite(limit) || fabs(above) <= limit)
		return NEARER_UNKNOWN;
	return above > 0.0 ? NEARER_HIGH : NEARER_LOW;
}

double sequential_margin(const struct references *references, const struct run_pair *pair,
			 double alpha)
{
	double dof, noise = noise_of(references, pair, &dof);

	return student_t_quantile(alpha, dof) * noise * sqrt(spread(&pair->base, &pair->candidate));
}

enum nearer sequential_above_zero(const struct references *references, const struct run_pair *pair,
				  double alpha)
{
	double margin = sequential_margin(references, pair, 2.0 * alpha);

	return pair->candidate.mean - pair->base.mean > margin ? NEARER_HIGH : NEARER_UNKNOWN;
}

unsigned sequential_next(unsigned runs, unsigned runs_max)
{
	unsigned next = runs + (runs + 1) / 2;

	return next < runs_max ? next : runs_max;
}

unsigned sequential_looks(unsigned runs, unsigned runs_max)
{
	unsigned looks = 1;

	for (; runs < runs_max; runs = sequential_next(runs, runs_max))
		looks++;
	return looks;
}
