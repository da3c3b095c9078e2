/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much the sets of a baseline differ from one to the next: a machine is not the same on another day, which runs of one
 * set cannot tell.
 */
#include "diff/compare/drift.h"

#include <math.h>

#include "diff/stats/statistics.h"

#define SETS_MAX      64
#define STEPS_MIN     3 /* of fewer, one change of the program would be half of what is known */
#define NORMAL_MIDDLE 0.6745 /* what half of a normal distribution is within, by its deviation */

bool drift_variance(const struct comparison *c, const struct run_values *v, double *variance_out,
		    double *dof_out)
{
	double sums[SETS_MAX] = {0}, steps[SETS_MAX], deviation;
	size_t counts[SETS_MAX] = {0}, last = 0, count = 0;

	for (size_t r = 0; r < c->run_count; r++) {
		size_t set = c->runs[r].is_history ? c->runs[r].profile->history : 0;

		if (isnan(v->x[r]) || c->runs[r].side != SIDE_BASE || set >= SETS_MAX)
			continue;
		sums[set] += v->x[r];
		counts[set]++;
	}
	if (!counts[0])
		return false;
	for (size_t set = 1; set < SETS_MAX; set++) {
		if (!counts[set])
			continue;
		steps[count++] =
			fabs(sums[set] / (double)counts[set] - sums[last] / (double)counts[last]);
		last = set;
	}
	if (count < STEPS_MIN)
		return false;
	/* (The median: that the program itself changed in one of them does not count.) */
	deviation = median(steps, count) / NORMAL_MIDDLE;
	*variance_out = deviation * deviation;
	/* (By simulation, at 1 %: a median of steps that share their ends is as sure as so many values.) */
	*dof_out = (double)(count / 2 + 1);
	return true;
}
