/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the rows of a group whose values changed or drift.
 */
#ifndef XT_DIFF_HISTORY_DETECT_H
#define XT_DIFF_HISTORY_DETECT_H

#include "diff/history/groups.h"

#define SEGMENT_MIN 5  /* values on each side of a change point */
#define WINDOW	    50 /* values that are searched together */

/* A growing list of places in a series. All zeros is empty; free list. */
struct places {
	LIST(size_t); /* ascending; the first value after each change */
};

/* How the values before and after a place differ. */
struct step {
	size_t place;	      /* most likely first value after the change */
	size_t first, last;   /* 95 % set of the place */
	double before, after; /* means */
	double low, high;     /* 95 % interval of after - before */
	double error;	      /* standard error of the difference */
	double p;	      /* corrected for the number of places; 1: no change */
	bool is_line;	      /* a line fits as well: the step is tested in addition to it */
};

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
struct history_finding {
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
	struct history_finding *findings;
	size_t finding_count, finding_capacity;
	struct places total_steps; /* points of the group where a total has a step */
};

/* Are values[begin..end) all equal? */
bool series_is_constant(const double *values, size_t begin, size_t end);

/* The track of a row, or NULL. */
const struct track *detection_find(const struct detection *detection, const struct history *history,
				   enum level level, const char *key, enum metric metric);

/* A value of the track, or a mean of its values, in the unit of its row. */
double track_value(const struct track *track, double value);

/* The mean of the part of the track between breaks and changes that contains a value. */
double track_part_mean(const struct track *track, const struct history_group *group, size_t index,
		       size_t *begin_out, size_t *end_out);

/* Searches a group. Free it with detection_free(). */
void detection_make(struct detection *detection, const struct history *history,
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
