/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift from one set of a baseline to the next. A machine changes from day to day, which the runs
 * of one set cannot show.
 */
#include "diff/compare/drift.h"

#include <math.h>

#include "diff/stats/statistics.h"
#include "log/base/weighted_median.h"

#define SETS_MAX      64
#define STEPS_MIN     3	     /* with fewer, one change of the program would dominate */
#define NORMAL_MIDDLE 0.6745 /* median of |x| of the standard normal distribution */

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
	/* The median ignores a step in which the program itself changed. */
	deviation = median(steps, count) / NORMAL_MIDDLE;
	*variance_out = deviation * deviation;
	/*
	 * Found by simulation at alpha = 1 %: successive steps share a set, so they are not
	 * independent.
	 */
	*dof_out = (double)(count / 2 + 1);
	return true;
}
