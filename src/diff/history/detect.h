/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the rows of a group whose values changed or drift.
 */
#ifndef XT_DIFF_HISTORY_DETECT_H
#define XT_DIFF_HISTORY_DETECT_H

#include "diff/history/tracks.h"

#define DRIFT_ALPHA_TOTAL 0.03	/* chance of a false drift of a total, at each call */
#define DRIFT_ALPHA_ROWS  0.005 /* the same for each other level */

/*
 * Searches a group. Uses and replaces the candidates that history->searches has for its prefix.
 * Free it with detection_free().
 */
void detection_make(struct detection *detection, struct history *history,
		    const struct history_group *group);
void detection_free(struct detection *detection);

/*
 * The means of a track before and after a point, at most `span` values of each, not beyond its
 * neighbouring changes and breaks. Returns false if a side has less than SEGMENT_MIN values.
 */
bool track_compare(const struct track *track, const struct history_group *group, size_t place,
		   size_t span, struct step *step);

/*
 * Relative standard deviation of the newest `span` values of a track since its last change. Sets
 * *count_out to the number of values that there were, at most span, unless it is NULL.
 */
double track_noise(const struct track *track, const struct history_group *group, size_t span,
		   size_t *count_out);

/* The same of values[begin..end), around the means between changes. */
double track_noise_between(const struct track *track, const struct history_group *group,
			   size_t begin, size_t end);

#endif
