/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the factor common to all paths first. Then tests level by level, with the noise that the
 * rows of a level show together.
 */
#include "diff/compare/effects.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "diff/compare/changes.h"
#include "diff/compare/estimate.h"
#include "diff/stats/statistics.h"
#include "log/base/weighted_median.h"

#define COMMON_PATHS_MIN 10   /* minimum number of paths to find a common factor */
#define COMMON_SHARE_MIN 1e-3 /* minimum share of the GPU time of such a path */
#define COMMON_SHARE_MAX 0.1  /* largest weight of one path */
/* Share of the error rate for the rows of one level. Rules look at several levels. */
#define FAMILY_PART 0.5
/* Number of rows assumed to vary between runs although none was observed to do so. */
#define UNOBSERVED_VARYING 0.25

/* List the deviations of each path from the midpoint of both sides. */
static void list_common(const struct comparison *c, double *deviations, double *shares,
			size_t *count_out)
{
	struct run_values v;

	run_values_init(&v, c);
	*count_out = 0;
	for (size_t i = c->first_rows[LEVEL_PATH]; i < c->first_rows[LEVEL_PATH + 1]; i++) {
		const struct comparison_row *row = &c->rows[i];
		double sums[SIDES] = {0}, middle;
		bool is_whole = row->share >= COMMON_SHARE_MIN;

		run_values_take(&v, c, METRIC_EACH, &row, 1);
		for (size_t r = 0; r < c->run_count; r++) {
			is_whole &= c->runs[r].is_history || !isnan(v.x[r]);
			if (!c->runs[r].is_history)
				sums[c->runs[r].side] += v.x[r];
		}
		if (!is_whole || !v.is_log)
			continue;
		middle = (sums[SIDE_BASE] / (double)c->side_counts[SIDE_BASE] +
			  sums[SIDE_NEW] / (double)c->side_counts[SIDE_NEW]) /
			 2.0;
		for (size_t r = 0; r < c->run_count; r++)
			deviations[*count_out * c->run_count + r] = v.x[r] - middle;
		shares[(*count_out)++] =
			row->share < COMMON_SHARE_MAX ? row->share : COMMON_SHARE_MAX;
	}
	run_values_free(&v);
}

static void set_common(struct comparison *c, const double *deviations, const double *shares,
		       size_t count, struct weighted_value *room)
{
	for (size_t r = 0; r < c->run_count; r++) {
		size_t used = 0;

		for (size_t i = 0; i < count; i++)
			if (!isnan(deviations[i * c->run_count + r]))
				room[used++] = (struct weighted_value){
					deviations[i * c->run_count + r], shares[i]};
		c->runs[r].common = used ? weighted_median(room, used) : 0.0;
	}
}

void effects_find_common(struct comparison *c)
{
	size_t rows = c->first_rows[LEVEL_PATH + 1] - c->first_rows[LEVEL_PATH], count = 0;
	double *deviations = xt_calloc(rows * c->run_count + 1, sizeof(*deviations));
	double *shares = xt_calloc(rows + 1, sizeof(*shares));
	struct weighted_value *room = xt_calloc(rows + 1, sizeof(*room));
	struct run_values v = {0};

	list_common(c, deviations, shares, &count);
	run_values_init(&v, c);
	if (count >= COMMON_PATHS_MIN) {
		set_common(c, deviations, shares, count, room);
		c->is_common_known = true;
		v.is_log = v.is_time = true;
		v.within = NAN;
		for (size_t r = 0; r < c->run_count; r++) {
			v.x[r] = c->runs[r].common;
			v.means[r] = exp(v.x[r]);
		}
		effect_from_runs(&c->common, c, &v);
		c->common.p_adjusted = c->common.p;
		c->common.is_significant = c->common.p <= c->alpha;
	}
	run_values_free(&v);
	free(deviations);
	free(shares);
	free(room);
}

/* Totals are separate questions, not a family. */
static bool is_tested_alone(enum level level)
{
	return level == LEVEL_TOTAL;
}

/* One metric of the rows of one level. */
struct family {
	struct comparison *c;
	enum level level;
	enum metric metric;
	size_t first, count;
	struct estimate *estimates;
	struct noise_sample *samples;
	double *p, *weights; /* of tested rows */
	size_t tested_count;
	struct run_values values;
};

static bool is_usable(const struct family *f, const struct comparison_row *row)
{
	return row->is_tested && f->values.is_log;
}

/* Estimate all rows and learn their noise. before is the noise of the previous pass, or NULL. */
static void estimate_rows(struct family *f, const struct noise *before, struct noise *noise)
{
	size_t used = 0, varying = 0;

	f->tested_count = 0;
	for (size_t i = 0; i < f->count; i++) {
		const struct comparison_row *row = &f->c->rows[f->first + i];
		double prior = INFINITY, dof;

		run_values_take(&f->values, f->c, f->metric, &row, 1);
		if (before && before->is_known) {
			struct noise_sample sample = {.within = f->values.within};

			prior = noise_variance(before, &sample, &dof);
		}
		estimate_make(&f->estimates[i], f->c, &f->values, prior);
		f->tested_count += row->is_tested;
		varying += row->is_tested && f->estimates[i].sample.variance > EXACT_VARIANCE;
		if (is_usable(f, row))
			f->samples[used++] = f->estimates[i].sample;
	}
	noise_learn(noise, f->samples, used);
	noise->varying_count = (double)varying + UNOBSERVED_VARYING;
	noise->varying_share =
		fmin(1.0, noise->varying_count / (double)(f->tested_count ? f->tested_count : 1));
}

/*
 * Share the error rate: half equally, half by cost, so that the most expensive rows have the
 * smallest detectable change. Costs are of both sides together, so they do not depend on which side
 * is slower.
 */
static void set_weights(struct family *f)
{
	double sum = 0.0, similarity = 0.5 / (double)(f->tested_count ? f->tested_count : 1);
	size_t tested = 0;

	for (size_t i = 0; i < f->count; i++)
		sum += f->c->rows[f->first + i].is_tested ? f->c->rows[f->first + i].share : 0.0;
	for (size_t i = 0; i < f->count; i++) {
		const struct comparison_row *row = &f->c->rows[f->first + i];

		if (row->is_tested)
			f->weights[tested++] =
				similarity + (sum > 0.0 ? 0.5 * row->share / sum : similarity);
	}
}

static void test_rows(struct family *f, const struct noise *noise)
{
	struct comparison *c = f->c;
	size_t tested = 0;

	set_weights(f);
	for (size_t i = 0; i < f->count; i++) {
		struct comparison_row *row = &c->rows[f->first + i];
		struct effect *effect = &row->effects[f->metric];
		const struct comparison_row *list = row;
		double weight = row->is_tested ? f->weights[tested] * FAMILY_PART : 1.0;

		run_values_take(&f->values, c, f->metric, &list, 1);
		if (is_tested_alone(f->level))
			effect_from_runs(effect, c, &f->values);
		else
			effect_from_estimate(effect, c, &f->values, &f->estimates[i], noise,
					     weight);
		if (row->is_tested)
			f->p[tested++] = isnan(effect->p) ? 1.0 : effect->p;
	}
	if (!is_tested_alone(f->level))
		holm_adjust(f->p, f->weights, tested);
	tested = 0;
	for (size_t i = 0; i < f->count; i++) {
		struct comparison_row *row = &c->rows[f->first + i];
		struct effect *effect = &row->effects[f->metric];

		effect->p_adjusted = row->is_tested ? f->p[tested++] : 1.0;
		effect->is_significant = effect->p_adjusted <=
					 c->alpha * (is_tested_alone(f->level) ? 1.0 : FAMILY_PART);
	}
}

static void test_family(struct comparison *c, enum level level, enum metric metric)
{
	size_t count = c->first_rows[level + 1] - c->first_rows[level];
	struct family f = {.c = c,
			   .level = level,
			   .metric = metric,
			   .first = c->first_rows[level],
			   .count = count,
			   .estimates = xt_calloc(count + 1, sizeof(*f.estimates)),
			   .samples = xt_calloc(count + 1, sizeof(*f.samples)),
			   .p = xt_calloc(count + 1, sizeof(*f.p)),
			   .weights = xt_calloc(count + 1, sizeof(*f.weights))};
	struct noise first, *noise = &c->noises[level][metric];

	run_values_init(&f.values, c);
	estimate_rows(&f, NULL, &first);
	estimate_rows(&f, &first, noise);
	test_rows(&f, noise);
	run_values_free(&f.values);
	free(f.estimates);
	free(f.samples);
	free(f.p);
	free(f.weights);
}

/* Splits a change into count and cost per item. */
static void set_change(struct comparison_row *row)
{
	const struct effect *value = &row->effects[METRIC_VALUE];
	const struct effect *count = &row->effects[METRIC_COUNT];
	const struct effect *each = &row->effects[METRIC_EACH];

	if (!(count->base > 0.0) || !(count->new > 0.0)) {
		row->by_count = value->change;
	} else {
		row->by_each = (each->new - each->base) * (count->new + count->base) / 2.0;
		row->by_count = value->change - row->by_each;
	}
	if (value->is_significant)
		row->change |= value->net_ratio > 0.0 ? CHANGE_MORE : CHANGE_LESS;
	if (each->is_significant)
		row->change |= each->net_ratio > 0.0 ? CHANGE_SLOWER : CHANGE_FASTER;
	if (!count->is_significant)
		return;
	if (!(count->base > 0.0))
		row->change |= CHANGE_APPEARED;
	else if (!(count->new > 0.0))
		row->change |= CHANGE_VANISHED;
	else
		row->change |= count->net_ratio > 0.0 ? CHANGE_MORE_OFTEN : CHANGE_LESS_OFTEN;
}

static int compare_changes(const void *a, const void *b)
{
	const struct comparison_row *x = a, *y = b;
	double dx = change_size(x), dy = change_size(y);

	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	return dx > dy ? -1 : dx < dy;
}

void effects_compute(struct comparison *c)
{
	/*
	 * Test the counts of paths first. They show whether runs do the same work, which other
	 * tests need.
	 */
	test_family(c, LEVEL_PATH, METRIC_COUNT);
	for (int level = 0; level < LEVELS; level++)
		if (level != LEVEL_PATH)
			test_family(c, (enum level)level, METRIC_COUNT);
	for (int level = 0; level < LEVELS; level++)
		for (int metric = 0; metric < METRICS; metric++)
			if (metric != METRIC_COUNT)
				test_family(c, (enum level)level, (enum metric)metric);
	for (size_t i = 0; i < c->row_count; i++)
		set_change(&c->rows[i]);
	qsort(c->rows, c->row_count, sizeof(*c->rows), compare_changes);
}
