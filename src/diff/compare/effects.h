/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the values of a row in each run to its effects: what the files of the comparison share.
 */
#ifndef XT_DIFF_EFFECTS_H
#define XT_DIFF_EFFECTS_H

#include "diff/compare/comparison.h"

#define EXACT_VARIANCE 1e-14 /* of runs that do not differ: what rounding leaves */
/* Of times from run to run, as logarithms: less is chance, or a simulated GPU. (On real ones the quietest of rows have
 * twice as much.) */
#define TIME_VARIANCE_MIN 1e-8

/* The values of something in all runs of a comparison, as they are tested. */
struct run_values {
	double *x;	 /* by run: logarithm, or the value by the mean; NAN: none */
	double *means;	 /* by run: as it is; 0 where the run does not have it … */
	double *typical; /* … and without what is far out, which x is of */
	double *counts;	 /* by run: how often it is in an iteration … */
	double *wholes;	 /* … and in all of the run, warm-up and all */
	double within;	 /* mean variance of x within runs; NAN: not known */
	enum level level;
	enum metric metric;
	bool is_log; /* else some run has none of it */
	bool is_time; /* that is measured, so that what is the same in all runs may differ in the next */
	bool includes_common; /* set before values_take(): nothing is to be taken away */
	bool has_common;      /* x goes with what all GPU times have in common */
};

/* Room for the values of a comparison. 0 or -ENOMEM; values_free() in any case. */
int run_values_init(struct run_values *values, const struct comparison *c);
void run_values_free(struct run_values *values);

/* Takes the sum of some rows (or one). */
void run_values_take(struct run_values *values, const struct comparison *c, enum metric metric,
		     const struct comparison_row *const *rows, size_t count);

/* A difference of sides as estimated. */
struct estimate {
	double difference; /* in terms of values.x */
	double factor;	   /* its variance is factor * that of a run */
	struct noise_sample sample;
};

/* prior: the variance of a run as far as it is known before, for how the row goes with what is common. */
void estimate_make(struct estimate *estimate, const struct comparison *c,
		   const struct run_values *values, double prior);

/* Fills in an effect of an estimate, of a family with that noise, in which the row has that part of the error
 * rate. */
void effect_from_estimate(struct effect *effect, const struct comparison *c,
			  const struct run_values *values, const struct estimate *estimate,
			  const struct noise *noise, double weight);

/* As it would be made of a single row with no family: by Student's t and by permutation, whichever is surer
 * of chance; with what goes with the time of day, if the runs' times are known. */
void effect_from_runs(struct effect *effect, const struct comparison *c,
		      const struct run_values *values);

/*
 * How much what was taken differs from a set of BASE's baseline to the next, the newest included, as a variance of such
 * a difference, and its degrees of freedom. False if there are too few sets to tell.
 */
bool drift_variance(const struct comparison *c, const struct run_values *values,
		    double *variance_out, double *dof_out);

/* The runs of both sides, BASE first, and when they began. */
struct run_series {
	double x[1024], time[1024];
	size_t base_count, count;
	bool has_times;
};

void run_series_make(struct run_series *series, const struct comparison *c,
		     const struct run_values *values);

/* Were the sides recorded in turns? */
bool run_series_is_interleaved(const struct run_series *series);

/*
 * The difference of the sides where values also go with time in a straight line, as they do while a machine
 * warms up. Least squares with a mean for each side. False if that cannot be told; where one side was recorded
 * after the other, also if there is no sign of it, for then time and side can hardly be told apart.
 */
bool run_series_trend(const struct run_series *series, double least, double *difference,
		      double *error);

/* Is it that NEW has as many as BASE (or a few, as many fewer), but counts others of them? */
bool warmup_boundary_explains(const struct comparison *c, const struct run_values *values);

/* The factor of each run that all paths have in common, and its effect. 0 or -ENOMEM. */
int effects_find_common(struct comparison *c);

/* All effects of all rows. 0 or -ENOMEM. */
int effects_compute(struct comparison *c);

#endif
