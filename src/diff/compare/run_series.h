/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs in order of time, to separate a trend from a difference between the sides.
 */
#ifndef XT_DIFF_RUN_SERIES_H
#define XT_DIFF_RUN_SERIES_H

#include "diff/compare/run_values.h"

/* The runs of both sides, BASE first, and when they started. */
struct run_series {
	double x[1024], time[1024];
	size_t base_count, count;
	bool has_times;
};

void run_series_make(struct run_series *series, const struct comparison *c,
		     const struct run_values *values);

/* Do the recording periods of the sides overlap? */
bool run_series_is_interleaved(const struct run_series *series);

/*
 * The difference of the sides after removing a linear trend over time (least squares, one mean for
 * each side), and its standard error. Machines that warm up show such a trend. Returns false if a
 * trend cannot be estimated. If one side was recorded after the other, it also returns false unless
 * the trend is visible, because time and side are confounded. The variance of a run is at least
 * `least`.
 */
bool run_series_trend(const struct run_series *series, double least, double *difference,
		      double *error);

#endif
