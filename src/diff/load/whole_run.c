/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/load/whole_run.h"

#include <math.h>
#include <string.h>

#define STALLS_MAX 0.05 /* of the whole */

/*
 * The sum of n iterations and of what came before and after them. Only iterations tell how much it
 * varies, and what of it was stalls. These are left out of what is tested, but cannot hide a large
 * change.
 */
static void extend(struct quantity *q, double whole, double n)
{
	double stalls = fmax((q->mean - q->typical) * n, 0.0);

	*q = (struct quantity){
		.mean = whole,
		.typical = whole - fmin(stalls, STALLS_MAX * whole),
		.error = q->mean > 0.0 ? q->error * n : NAN,
		.residual = q->mean > 0.0 ? q->residual * n : NAN,
	};
}

static void divide(struct quantity *q, double by)
{
	q->mean /= by;
	q->typical /= by;
	q->error /= by;
	q->residual /= by;
}

/* The number of instances of a range. 1 if it is unknown. */
static double instances_of(const struct run_profile *profile, const struct profile_entry *entry)
{
	const struct profile_entry *span = run_profile_find(profile, LEVEL_SPAN, entry->key);

	return span && span->whole_count > 0.0 ? span->whole_count : 1.0;
}

/* These are no sums. */
static bool is_peak(const struct profile_entry *entry)
{
	return entry->level == LEVEL_MEMORY ||
	       (entry->level == LEVEL_TOTAL &&
		(!strcmp(entry->key, "peak-memory") || !strcmp(entry->key, "iterations")));
}

static void use_whole(const struct run_profile *profile, struct profile_entry *entry)
{
	struct quantity *q = entry->quantities;
	double n = (double)profile->used_count, count = entry->whole_count;

	/* A mean by item has the errors of its sum. */
	q[METRIC_EACH].mean *= q[METRIC_COUNT].mean;
	q[METRIC_EACH].typical *= q[METRIC_COUNT].mean;
	q[METRIC_EACH].error *= q[METRIC_COUNT].mean;
	q[METRIC_EACH].residual *= q[METRIC_COUNT].mean;
	extend(&q[METRIC_VALUE], entry->whole_value, n);
	extend(&q[METRIC_EACH], entry->whole_value, n);
	extend(&q[METRIC_COUNT], count, n);
	divide(&q[METRIC_EACH], count > 0.0 ? count : NAN);
	if (entry->level == LEVEL_RANGE || entry->level == LEVEL_SPAN) {
		divide(&q[METRIC_VALUE], instances_of(profile, entry));
		divide(&q[METRIC_COUNT], instances_of(profile, entry));
	}
}

void run_profile_use_whole(struct run_profile *profile)
{
	/* Without iterations, values are of the whole run already. */
	bool has_iterations = run_profile_has_iterations(profile);

	for (size_t i = 0; i < profile->entry_count; i++) {
		struct profile_entry *entry = &profile->entries[i];

		if (has_iterations && !is_peak(entry))
			use_whole(profile, entry);
		else if (entry->level == LEVEL_RANGE || entry->level == LEVEL_SPAN)
			for (int m = METRIC_VALUE; m <= METRIC_COUNT; m++)
				divide(&entry->quantities[m], instances_of(profile, entry));
	}
	profile->is_whole = true;
}
