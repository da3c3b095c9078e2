/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extracts the series of the rows of a group.
 */
#ifndef XT_DIFF_HISTORY_TRACKS_H
#define XT_DIFF_HISTORY_TRACKS_H

#include "diff/history/change_points.h"
#include "diff/history/group.h"

/* The values of one row over time, without the points that lack it. */
struct track {
	size_t row;
	enum metric metric;
	bool is_log;	/* values are logarithms, so differences are ratios */
	bool is_tested; /* large enough, see docs/internals/DIFF_METHOD.md */
	double cost;	/* mean value */
	double floor;	/* smallest standard deviation */
	double *values;
	size_t *places; /* of the values, in the group */
	size_t count;
	struct places changes; /* indices of values */
};

/* A step or a drift of a track. */
struct finding {
	size_t track;
	bool is_drift;
	bool is_at_break;	   /* where the machine or the method changed */
	size_t place, first, last; /* in the group: it began at a point from first to last */
	double before, after;	   /* means; of a drift: its ends */
	double ratio, low, high;   /* after / before - 1, and its 95 % interval */
	double per_run;		   /* of a drift: relative change per run */
	double p;		   /* adjusted */
	size_t movement;	   /* set by movements_make() */
	const char *reason;	   /* it is accepted; NULL: it is not */
};

struct detection {
	struct track *tracks;
	size_t track_count, track_capacity;
	struct finding *findings;
	size_t finding_count, finding_capacity;
	struct places total_steps; /* points of the group where a total has a step */
};

/* Adds the tracks of all rows. Constant ones are left out. */
void tracks_make(struct detection *detection, const struct history *history,
		 const struct history_group *group);

/* The track of a row, or NULL. */
const struct track *detection_find(const struct detection *detection, const struct history *history,
				   enum level level, const char *key, enum metric metric);

/* The index of the first value at or after a point of the group. */
size_t track_index(const struct track *track, size_t place);

/* The part of the track between breaks and changes that contains a value. */
void track_part(const struct track *track, const struct history_group *group, size_t index,
		size_t *begin_out, size_t *end_out);

#endif
