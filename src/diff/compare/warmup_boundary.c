/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of warm-up is detected in each run separately. A rare item can therefore be counted in
 * some runs and be part of warm-up in others, although all runs have it equally often.
 */
#include "diff/compare/warmup_boundary.h"

#include <math.h>

#define COUNTS_ALIKE 1e-9 /* per iteration: at most rounding */

/* Do all runs have the same number of iterations, with different numbers of warm-up iterations? */
static bool boundaries_differ(const struct comparison *c)
{
	const struct run_profile *first = c->runs[0].profile;
	bool differs = false;

	for (size_t r = 0; r < c->run_count; r++) {
		const struct run_profile *run = c->runs[r].profile;

		if (c->runs[r].is_history)
			continue;
		if (!run_profile_has_iterations(run) || run->found_count != first->found_count)
			return false;
		differs |= run->used_count != first->used_count;
	}
	return differs;
}

/*
 * If all runs did the same at the same time, a run with a longer warm-up would count at most as
 * many items. If most pairs of runs of the two sides contradict this, the items moved in time.
 * Random items contradict it sometimes.
 */
static bool has_moved(const struct comparison *c, const struct run_values *v, enum side more)
{
	size_t pairs = 0, against = 0;

	for (size_t a = 0; a < c->run_count; a++) {
		const struct run_profile *with = c->runs[a].profile;

		if (c->runs[a].is_history || c->runs[a].side != more)
			continue;
		for (size_t b = 0; b < c->run_count; b++) {
			const struct run_profile *without = c->runs[b].profile;

			if (c->runs[b].is_history || c->runs[b].side == more ||
			    with->used_count > without->used_count)
				continue;
			pairs++;
			against += v->counts[a] * (double)with->used_count >
				   v->counts[b] * (double)without->used_count + 0.5;
		}
	}
	return against > pairs / 2;
}

bool warmup_boundary_explains(const struct comparison *c, const struct run_values *v)
{
	double counts[SIDES] = {0}, wholes[SIDES] = {0}, used = 0.0, counted, whole;
	bool varies = false;

	if (!boundaries_differ(c))
		return false;
	for (size_t r = 0; r < c->run_count; r++) {
		enum side side = c->runs[r].side;

		if (c->runs[r].is_history)
			continue;
		varies |= fabs(v->counts[r] - v->counts[0]) > COUNTS_ALIKE;
		counts[side] += v->counts[r] / (double)c->side_counts[side];
		wholes[side] += v->wholes[r] / (double)c->side_counts[side];
		used += (double)c->runs[r].profile->used_count /
			(double)(c->side_counts[SIDE_BASE] + c->side_counts[SIDE_NEW]);
	}
	counted = counts[SIDE_NEW] - counts[SIDE_BASE];
	/* A difference of one per iteration is not a rare item. */
	if (!varies || !(fabs(counted) < 1.0))
		return false;
	if (has_moved(c, v, counted > 0.0 ? SIDE_NEW : SIDE_BASE))
		return false;
	/* Additional items would also be additional in the whole run. */
	whole = copysign(1.0, counted) * (wholes[SIDE_NEW] - wholes[SIDE_BASE]);
	return whole <= fabs(counted) * used / 2.0;
}
