/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moderated variances after Smyth (2004), with a prior that depends on the noise within runs.
 */
#include "diff/stats/noise.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "diff/stats/statistics.h"
#include "log/base/weighted_median.h"

#define SAMPLES_MIN   8	    /* with fewer rows, nothing is learned */
#define PRIOR_DOF_MAX 40.0  /* rows are never assumed to be equally noisy */
#define SPREAD_ERRORS 1.0   /* standard errors added to the estimated spread */
#define VARIANCE_MIN  1e-18 /* at most rounding */

static double known(double value)
{
	return isnan(value) ? 0.0 : value;
}

/* The median variance between runs in excess of the variance within runs. */
static double find_between(const struct noise_sample *samples, size_t count, double *room)
{
	size_t used = 0;
	double middle;

	for (size_t i = 0; i < count; i++)
		if (samples[i].dof > 0.0 && samples[i].variance > VARIANCE_MIN)
			room[used++] =
				samples[i].variance / chi_squared_median_ratio(samples[i].dof) -
				known(samples[i].within);
	middle = median(room, used);
	return middle > 0.0 ? middle : 0.0;
}

/*
 * Fourth central moment of the logarithm of a variance. The fourth cumulant of a log-gamma
 * distribution is the third derivative of digamma(), computed here by finite differences.
 */
static double fourth_moment(double half)
{
	double step = half / 64.0, second = trigamma(half);
	double bend =
		(trigamma(half + step) - 2.0 * second + trigamma(half - step)) / (step * step);

	return bend + 3.0 * second * second;
}

void noise_learn(struct noise *noise, const struct noise_sample *samples, size_t count)
{
	double *room = xt_calloc(count + 1, sizeof(*room)), sum = 0.0, squares = 0.0,
	       expected = 0.0;
	double spread, fourths = 0.0;
	size_t used = 0;

	*noise = (struct noise){.scale = 1.0};
	noise->between = find_between(samples, count, room);
	for (size_t i = 0; i < count; i++) {
		double prior = known(samples[i].within) + noise->between, half, z;

		if (!(samples[i].dof > 0.0))
			continue;
		if (!(samples[i].variance > VARIANCE_MIN) || !(prior > 0.0))
			continue;
		half = samples[i].dof / 2.0;
		/* Remove the expected value of the logarithm of a variance. */
		z = log(samples[i].variance / prior) - digamma(half) + log(half);
		sum += z;
		squares += z * z;
		expected += trigamma(half);
		fourths += fourth_moment(half);
		used++;
	}
	free(room);
	if (used < SAMPLES_MIN)
		return;
	noise->is_known = true;
	sum /= (double)used;
	expected /= (double)used;
	spread =
		(squares / (double)used - sum * sum) * (double)used / (double)(used - 1) - expected;
	/* Few runs show little of how much rows differ in noise. Assume an upper estimate. */
	spread =
		fmax(spread, 0.0) +
		SPREAD_ERRORS * sqrt((fourths / (double)used - expected * expected) / (double)used);
	if (spread > 0.0)
		noise->prior_dof = 2.0 * trigamma_inverse(spread);
	if (!(spread > 0.0) || noise->prior_dof > PRIOR_DOF_MAX)
		noise->prior_dof = PRIOR_DOF_MAX;
	noise->scale = exp(sum + digamma(noise->prior_dof / 2.0) - log(noise->prior_dof / 2.0));
}

double noise_variance(const struct noise *noise, const struct noise_sample *sample, double *dof_out)
{
	double prior = noise->scale * (known(sample->within) + noise->between), variance;

	*dof_out = sample->dof;
	variance = sample->variance;
	if (noise->is_known) {
		*dof_out += noise->prior_dof;
		variance = (noise->prior_dof * prior + sample->dof * sample->variance) / *dof_out;
	}
	/* Runs agree better than the variation of their iterations only by chance. */
	return variance > known(sample->within) ? variance : known(sample->within);
}
