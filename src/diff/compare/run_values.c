/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the values of rows in each run.
 */
#include "diff/compare/run_values.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

void run_values_init(struct run_values *v, const struct comparison *c)
{
	*v = (struct run_values){.x = xt_calloc(c->run_count + 1, sizeof(*v->x)),
				 .means = xt_calloc(c->run_count + 1, sizeof(*v->means)),
				 .typical = xt_calloc(c->run_count + 1, sizeof(*v->typical)),
				 .counts = xt_calloc(c->run_count + 1, sizeof(*v->counts)),
				 .wholes = xt_calloc(c->run_count + 1, sizeof(*v->wholes))};
}

void run_values_free(struct run_values *v)
{
	free(v->x);
	free(v->means);
	free(v->typical);
	free(v->counts);
	free(v->wholes);
}

/* The sum of rows in a run. If the run has no items, METRIC_EACH has a mean of NAN. */
static struct quantity sum_rows(const struct comparison_row *const *rows, size_t count, size_t run,
				enum metric metric)
{
	struct quantity sum = {0};
	double chunks = 0.0;

	for (size_t i = 0; i < count; i++) {
		const struct profile_entry *entry = rows[i]->entries[run];
		const struct quantity *q;
		double weight = 1.0;

		if (!entry)
			continue;
		q = &entry->quantities[metric];
		if (metric == METRIC_EACH)
			weight = entry->quantities[METRIC_COUNT].mean;
		if (!(weight > 0.0))
			continue;
		/* Variances add up. NAN stays NAN. */
		sum.mean += q->mean * weight;
		sum.typical += (rows[i]->level == LEVEL_TOTAL ? q->mean : q->typical) * weight;
		sum.error += q->error * q->error * weight * weight;
		sum.residual += q->residual * q->residual * weight * weight;
		chunks += weight;
	}
	if (metric != METRIC_EACH)
		chunks = 1.0;
	sum.mean /= chunks;
	sum.typical /= chunks;
	sum.error = sqrt(sum.error) / chunks;
	sum.residual = sqrt(sum.residual) / chunks;
	return sum;
}

static void take_counts(struct run_values *v, const struct comparison_row *const *rows,
			size_t count, size_t run)
{
	v->counts[run] = v->wholes[run] = 0.0;
	for (size_t i = 0; i < count; i++) {
		const struct profile_entry *entry = rows[i]->entries[run];

		v->counts[run] += entry ? entry->quantities[METRIC_COUNT].mean : 0.0;
		v->wholes[run] += entry ? entry->whole_count : 0.0;
	}
}

void run_values_take(struct run_values *v, const struct comparison *c, enum metric metric,
		     const struct comparison_row *const *rows, size_t count)
{
	double sum = 0.0, within = 0.0;
	size_t used = 0, known = 0;

	v->has_common = !v->keep_common && c->is_common_known &&
			level_specs[rows[0]->level].is_gpu_time && metric != METRIC_COUNT;
	v->is_log = true;
	v->is_time = metric != METRIC_COUNT && rows[0]->unit == UNIT_NS;
	v->level = rows[0]->level;
	v->metric = metric;
	for (size_t r = 0; r < c->run_count; r++) {
		struct quantity q = sum_rows(rows, count, r, metric);
		double error = (v->has_common ? q.residual : q.error) / q.typical;

		v->x[r] = NAN;
		v->means[r] = q.mean;
		v->typical[r] = q.typical;
		take_counts(v, rows, count, r);
		if (isnan(q.mean))
			continue;
		if (!c->runs[r].is_history) {
			v->is_log &= q.typical > 0.0;
			sum += q.typical;
			used++;
		}
		if (isfinite(error)) {
			within += error * error;
			known++;
		}
	}
	v->within = known ? within / (double)known : NAN;
	for (size_t r = 0; r < c->run_count; r++) {
		double typical = v->typical[r];

		if (isnan(v->means[r]) || (c->runs[r].is_history && !(typical > 0.0)))
			continue;
		v->x[r] = v->is_log ? log(typical) : sum > 0.0 ? typical * (double)used / sum : 0.0;
	}
}
