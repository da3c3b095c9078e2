/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates sums of the whole time from the windows of a duty cycle (xtrace record --duty).
 *
 * An estimate is what was recorded, multiplied by the time that the duty cycles of all logs cover,
 * divided by the recorded time of all logs. All other sums of a run stay what was recorded.
 *
 * The error follows from the differences between windows. Windows are dealt into DUTY_GROUPS
 * groups in turn, across all logs:
 *	y, w	sum and recorded time of a group
 *	Y, W	sum and recorded time of all groups
 *	F	the factor of the estimate
 *	variance of the estimate = F (F - 1) sum of (y - Y w / W)^2 / (1 - w / W)
 *	degrees of freedom = W^2 / (sum of w^2) - 1
 * This is the ratio estimator with the method of random groups (Wolter, Introduction to Variance
 * Estimation, chapter 2).
 */
#ifndef XT_MERGE_DUTY_SUMS_H
#define XT_MERGE_DUTY_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/duty_cycle.h"
#include "merge/base/weights.h"
#include "merge/naming/paths.h"
#include "merge/read/pauses.h"

#define DUTY_GROUPS 32

enum duty_weight { DUTY_GPU_TIME, DUTY_COUNT, DUTY_WEIGHTS };

/* Recorded sums, by group. */
struct duty_row {
	double groups[DUTY_WEIGHTS][DUTY_GROUPS];
};

/* The sums of one log. All zeros: it has no duty cycle. */
struct duty_sums {
	const struct pauses *pauses; /* NULL: no duty cycle */
	size_t window;		     /* of the previous event */
	uint64_t last_ns;	     /* of all events */
	struct duty_row *rows;	     /* by index in the aggregate */
	size_t capacity;
	unsigned rotation; /* of its groups in the run; set by duty_sums_finish() */
};

/* The sums of all logs. Zeros: none has a duty cycle. */
struct duty_run {
	struct xt_duty_cycle cycle;
	bool is_mixed;		     /* some logs have another duty cycle, or none: no estimates */
	size_t log_count;	     /* with a duty cycle */
	size_t log_unrecorded_count; /* of these: without any window */
	uint64_t window_count;
	uint64_t covered_ns;  /* by the duty cycles of all logs */
	uint64_t recorded_ns; /* of that, in windows */
	double group_ns[DUTY_GROUPS];
	struct duty_row *rows; /* by node of the paths */
	size_t capacity;
};

/* A log, or the selected part of it. */
struct duty_span {
	struct xt_duty_cycle cycle;
	uint64_t from_ns, until_ns;
	const struct pauses *pauses; /* of recording */
	const struct pauses *away;   /* those that the duty cycle does not cover */
};

/* Adds work of the owner at that index. time_ns: of its call. Returns 0 or -ENOMEM. */
int duty_sums_add(struct duty_sums *sums, uint32_t place, uint64_t time_ns, uint64_t gpu_ns);

/* After the last event of a log: adds its windows to the run. */
void duty_sums_finish(struct duty_sums *sums, const struct duty_span *span, struct duty_run *run);

/* Adds the sums of an owner to its node in the paths. Returns 0 or -ENOMEM. */
int duty_sums_add_path(const struct duty_sums *sums, uint32_t place, struct duty_run *run,
		       uint32_t node);

void duty_sums_free(struct duty_sums *sums);
void duty_run_free(struct duty_run *run);

/* An estimate of a sum, and half the width of its 95 % interval. */
struct duty_estimate {
	double value, error;
};

enum duty_table { DUTY_BY_PATH, DUTY_BY_FRAME /* with callees */, DUTY_BY_NAME };

/*
 * Estimates of gpu-time or count, by node or by name in the paths; in DUTY_BY_FRAME, PATH_ROOT is
 * the sum of all. The caller frees *estimates_out. NULL for other weights, and if there are no
 * estimates. Returns 0 or -ENOMEM.
 */
int duty_run_estimates(const struct duty_run *run, const struct paths *paths, enum weight weight,
		       enum duty_table table, struct duty_estimate **estimates_out);

#endif
