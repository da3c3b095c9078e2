/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of one row, or of a sum of rows, in each run of a comparison.
 */
#ifndef XT_DIFF_RUN_VALUES_H
#define XT_DIFF_RUN_VALUES_H

#include "diff/compare/comparison.h"

/* Arrays have one element for each run. */
struct run_values {
	double *x;	 /* the tested value: logarithm, or ratio to the mean; NAN: missing */
	double *means;	 /* mean for one iteration; 0 if the run does not have the row */
	double *typical; /* the same without outliers; x is computed from it */

	double *counts; /* number for one iteration */
	double *wholes; /* number in the whole run, including warm-up */
	double within;	/* mean variance of x within runs; NAN: unknown */
	enum level level;
	enum metric metric;
	bool is_log;  /* x is a logarithm; false if a run has a value of zero */
	bool is_time; /* measured time: equal values in all runs do not make it exact */

	bool keep_common; /* input of run_values_take(): do not remove the common factor */
	bool has_common;  /* x varies with the common factor of all GPU times; remove it */
};

/* Allocates for a comparison. Free it with run_values_free(). */
void run_values_init(struct run_values *values, const struct comparison *c);
void run_values_free(struct run_values *values);

/* Takes the sum of some rows of one level. */
void run_values_take(struct run_values *values, const struct comparison *c, enum metric metric,
		     const struct comparison_row *const *rows, size_t count);

#endif
