/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Change points of a series of numbers, and slow trends. Pure functions.
 *
 * E-divisive [1] splits windows of the series, and Student's t test replaces its permutation test,
 * as in Hunter [2]. docs/internals/DIFF_METHOD.md describes the method and has the references.
 */
#ifndef XT_DIFF_CHANGE_POINTS_H
#define XT_DIFF_CHANGE_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#define SEGMENT_MIN  5	   /* values on each side of a change point */
#define WINDOW	     50	   /* values that are searched together */
#define WINDOW_STEP  25	   /* distance of the starts of windows */
#define STEP_ALPHA   0.005 /* chance of a false change point per family and WINDOW_STEP runs */
#define SCAN_ALPHA   1e-3  /* of the candidates that the search returns */
#define DRIFT_MIN    15	   /* values that a trend needs */
#define DRIFT_WINDOW 30	   /* the shortest window of a long series; longer ones double */

/* A growing list of places in a series. All zeros is empty; free list. */
struct places {
	size_t *list; /* ascending; the first value after each change */
	size_t count, capacity;
};

/*
 * Adds candidates in values[begin..end) to places, which are empty. Windows start at begin and
 * every WINDOW_STEP later, and one ends at the last value.
 */
void change_points_search(struct places *places, const double *values, size_t begin, size_t end);

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

/*
 * Compares values[begin..place) with values[place..end). At most WINDOW values on each side count.
 * floor is the smallest standard deviation that values can have.
 */
void step_measure(struct step *step, const double *values, size_t begin, size_t place, size_t end,
		  double floor);

/*
 * Removes candidates between begin and end that are not significant. Keeps
 * others at least SEGMENT_MIN apart.
 */
void change_points_prune(struct places *places, const double *values, size_t begin, size_t end,
			 double floor);

/*
 * Returns the factor by which choosing both ends of a short part between two changes raises the
 * p-value of the change at this index. This is in addition to the correction of step_measure().
 */
double change_points_choices(const struct places *places, size_t index, size_t begin, size_t end);

void places_add(struct places *places, size_t place); /* keeps the order, without duplicates */
void places_remove(struct places *places, size_t index);

struct trend {
	size_t first;	  /* first value of the window */
	double slope;	  /* per value */
	double low, high; /* 95 % interval of slope */
	double p;	  /* corrected for the number of windows; 1: no trend */
};

/*
 * Finds the most significant trend that ends at the last value. The mean may change at cuts, where
 * other rows have steps.
 */
void trend_measure(struct trend *trend, const double *values, const struct places *cuts,
		   size_t begin, size_t end, double floor);

/* Standard deviation around the mean. NAN for less than two values. */
double series_deviation(const double *values, size_t begin, size_t end);

#endif
