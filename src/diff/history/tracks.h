/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extracts the series of the rows of a group.
 */
#ifndef XT_DIFF_HISTORY_TRACKS_H
#define XT_DIFF_HISTORY_TRACKS_H

#include "diff/history/detect.h"

/* Adds the tracks of all rows. Constant ones are left out. Returns 0 or -ENOMEM. */
int tracks_make(struct detection *detection, const struct history *history,
		const struct history_group *group);

/* The index of the first value at or after a point of the group. */
size_t track_index(const struct track *track, size_t place);

/* The part of the track between breaks and changes that contains a value. */
void track_part(const struct track *track, const struct history_group *group, size_t index,
		size_t *begin_out, size_t *end_out);

#endif
