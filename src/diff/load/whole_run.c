/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/load/whole_run.h"

#include <math.h>

/* Errors and outliers keep their share of the mean. */
static void rescale(struct quantity *q, double mean)
{
	double factor = mean / q->mean;

	if (!isfinite(factor) || !(q->mean > 0.0)) {
		/* Work outside of iterations: they do not tell how much it varies. */
		*q = (struct quantity){
			.mean = mean, .typical = mean, .error = NAN, .residual = NAN};
		return;
	}
	q->mean = mean;
	q->typical *= factor;
	q->error *= factor;
	q->residual *= factor;
}

/* The number of instances of a range. 1 if it is unknown. */
static double instances_of(const struct run_profile *profile, const struct profile_entry *entry)
{
	const struct profile_entry *span = run_profile_find(profile, LEVEL_SPAN, entry->key);

	return span && span->whole_count > 0.0 ? span->whole_count : 1.0;
}

static void use_whole(const struct run_profile *profile, struct profile_entry *entry)
{
	struct quantity *q = entry->quantities;
	double parts = 1.0, value = entry->whole_value, count = entry->whole_count;

	if (entry->level == LEVEL_RANGE || entry->level == LEVEL_SPAN)
		parts = instances_of(profile, entry);
	rescale(&q[METRIC_VALUE], value / parts);
	rescale(&q[METRIC_COUNT], count / parts);
	rescale(&q[METRIC_EACH], count > 0.0 ? value / count : NAN);
}

void run_profile_use_whole(struct run_profile *profile)
{
	for (size_t i = 0; i < profile->entry_count; i++)
		use_whole(profile, &profile->entries[i]);
	profile->is_whole = true;
}
