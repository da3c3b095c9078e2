/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trends over time. While a machine warms up, each run is slower than the one before.
 */
#include "diff/compare/run_series.h"

#include <math.h>

#include "diff/stats/statistics.h"

/*
 * Largest gap between the sides, in standard deviations of the start times. 3.5: one side directly
 * follows the other.
 */
#define GAP_MAX 8.0
#define TREND_P 0.5 /* p-value up to which a trend counts as visible */

void run_series_make(struct run_series *s, const struct comparison *c, const struct run_values *v)
{
	*s = (struct run_series){.has_times = true};
	for (size_t r = 0; r < c->run_count && s->count < 1024; r++) {
		if (c->runs[r].is_history || isnan(v->x[r]))
			continue;
		s->base_count += c->runs[r].side == SIDE_BASE;
		s->time[s->count] = (double)c->runs[r].profile->start_realtime_ns;
		s->has_times &= c->runs[r].profile->start_realtime_ns != 0;
		s->x[s->count++] = v->x[r];
	}
}

bool run_series_is_interleaved(const struct run_series *s)
{
	double first[SIDES] = {INFINITY, INFINITY}, last[SIDES] = {0};

	for (size_t i = 0; i < s->count; i++) {
		int side = i >= s->base_count;

		first[side] = fmin(first[side], s->time[i]);
		last[side] = fmax(last[side], s->time[i]);
	}
	return first[SIDE_BASE] < last[SIDE_NEW] && first[SIDE_NEW] < last[SIDE_BASE];
}

bool run_series_trend(const struct run_series *s, double least, double *difference, double *error)
{
	double means[SIDES][2] = {{0}}, tt = 0.0, tx = 0.0, rest = 0.0, slope, apart, variance;
	size_t counts[SIDES] = {s->base_count, s->count - s->base_count};

	if (!s->has_times || s->count < 6)
		return false;
	for (size_t i = 0; i < s->count; i++) {
		int side = i >= s->base_count;

		means[side][0] += s->x[i] / (double)counts[side];
		means[side][1] += s->time[i] / (double)counts[side];
	}
	for (size_t i = 0; i < s->count; i++) {
		int side = i >= s->base_count;
		double t = s->time[i] - means[side][1];

		tt += t * t;
		tx += t * (s->x[i] - means[side][0]);
	}
	if (!(tt > 0.0) || !counts[0] || !counts[1])
		return false;
	slope = tx / tt;
	for (size_t i = 0; i < s->count; i++) {
		int side = i >= s->base_count;
		double left = s->x[i] - means[side][0] - slope * (s->time[i] - means[side][1]);

		rest += left * left;
	}
	apart = means[1][1] - means[0][1];
	/*
	 * Do not extrapolate the line across a long gap: a warm-up of minutes does not continue for
	 * a day.
	 */
	if (apart * apart > GAP_MAX * GAP_MAX * tt / (double)s->count)
		return false;
	variance = rest / (double)(s->count - 3);
	variance = variance > least ? variance : least;
	if (!run_series_is_interleaved(s) &&
	    student_t_p_value(slope * sqrt(tt / variance), (double)(s->count - 3)) > TREND_P)
		return false;
	*difference = means[1][0] - means[0][0] - slope * apart;
	*error = sqrt(variance *
		      (1.0 / (double)counts[0] + 1.0 / (double)counts[1] + apart * apart / tt));
	return *error > 0.0;
}
