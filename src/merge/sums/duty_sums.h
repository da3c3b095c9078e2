/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates the sums of the whole time from the windows of a duty cycle (xtrace record --duty).
 *
 * The weights of a log are multiplied by the time that its duty cycle covers, divided by the
 * recorded time. For the error, windows are dealt into DUTY_GROUPS groups in turn. Each owner has
 * one residual for each group: what its sum in that group differs from its share of the recorded
 * time. The variance of any sum of owners follows from the sums of their residuals. This is the
 * ratio estimator with the method of random groups (Wolter, Introduction to Variance Estimation,
 * chapter 2).
 */
#ifndef XT_MERGE_DUTY_SUMS_H
#define XT_MERGE_DUTY_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/weights.h"
#include "merge/naming/paths.h"
#include "merge/read/pauses.h"

#define DUTY_GROUPS 32

enum duty_weight { DUTY_GPU_TIME, DUTY_COUNT, DUTY_WEIGHTS };

struct duty_residuals {
	float of[DUTY_WEIGHTS][DUTY_GROUPS];
};

/* The sums of one log. All zeros: it has no duty cycle. */
struct duty_sums {
	const struct pauses *pauses; /* NULL: no duty cycle */
	size_t window;		     /* of the previous event */
	struct duty_residuals *rows; /* by index in the aggregate; at first, sums by group */
	size_t capacity;
	/* Set by duty_sums_finish(): */
	double factor;
	double shares[DUTY_GROUPS]; /* of the recorded time */
	double correction;	    /* of residuals, for the number of groups */
};

/* The sums of all logs. Zeros: none has a duty cycle. */
struct duty_run {
	size_t log_count;	     /* with a duty cycle */
	size_t log_unrecorded_count; /* of these: without any window */
	uint64_t window_count;
	uint64_t covered_ns;	     /* by duty cycles */
	uint64_t recorded_ns;	     /* of that, in windows */
	uint64_t unrecorded_ns;	     /* covered by logs without any window */
	uint64_t scaled_ns;	     /* GPU time that scaling added to the paths */
	unsigned freedom;	     /* degrees of freedom of the error */
	struct duty_residuals *rows; /* by node of the paths */
	size_t capacity;
};

/* A part of a log, and what was recorded of it. */
struct duty_span {
	uint64_t from_ns, until_ns;
	const struct pauses *pauses; /* of recording */
	const struct pauses *away;   /* those that the duty cycle does not cover */
};

/* Adds work of the owner at that index. time_ns: of its call. Returns 0 or -ENOMEM. */
int duty_sums_add(struct duty_sums *sums, uint32_t place, uint64_t time_ns, uint64_t gpu_ns);

/* After the last event: computes the factor, and adds the log to the run. */
void duty_sums_finish(struct duty_sums *sums, const struct duty_span *span, struct duty_run *run);

/* Multiplies those weights that depend on the recorded time. */
void duty_sums_scale(const struct duty_sums *sums, uint64_t weights[WEIGHTS]);

/* Adds the residuals of an owner to its node in the paths. Returns 0 or -ENOMEM. */
int duty_sums_add_residuals(const struct duty_sums *sums, uint32_t place, struct duty_run *run,
			    uint32_t node);

void duty_sums_free(struct duty_sums *sums);
void duty_run_free(struct duty_run *run);

/* Returns whether the sums of the run are estimates. */
static inline bool duty_run_is_scaled(const struct duty_run *run)
{
	return run->window_count != 0;
}

enum duty_table { DUTY_BY_PATH, DUTY_BY_FRAME /* with callees */, DUTY_BY_NAME };

/*
 * Half the width of the 95 % intervals of a weight: by node, or by name in the paths. Frame 0 is
 * the sum of all paths. The caller frees *halves_out. Weights without residuals, and runs without a
 * duty cycle, have none: NULL. Returns 0 or -ENOMEM.
 */
int duty_run_errors(const struct duty_run *run, const struct paths *paths, enum weight weight,
		    enum duty_table table, double **halves_out);

#endif
