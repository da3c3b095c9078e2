/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All steps of a comparison, and the notes about it. It finds the factor common to all paths
 * first. Then it tests level by level, with the noise that the rows of a level show together.
 */
#include "diff/compare/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/compare/estimate.h"
#include "diff/compare/rows.h"
#include "diff/load/load_runs.h"
#include "log/base/compare.h"

/* The absolute change of the value, for sorting. -1 if it is unknown. */
static double change_size(const struct comparison_row *row)
{
	double size = fabs(row->effects[METRIC_VALUE].change);

	return isnan(size) ? -1.0 : size;
}

const struct profile_entry *change_entry(const struct comparison_row *row)
{
	return row->shown[SIDE_NEW] ? row->shown[SIDE_NEW] : row->shown[SIDE_BASE];
}

/* Largest change first; rows of time before bytes and counts. */
static int compare_changes(const void *a, const void *b)
{
	const struct comparison_row *x = *(const struct comparison_row *const *)a;
	const struct comparison_row *y = *(const struct comparison_row *const *)b;

	return ORDER(y->unit == UNIT_NS, x->unit == UNIT_NS)
		?: ORDER(change_size(y), change_size(x)) ?: strcmp(x->key, y->key);
}

const struct comparison_row **changes_list(const struct comparison *comparison, bool of_paths,
					   size_t *count_out)
{
	const struct comparison_row **rows = xt_calloc(comparison->row_count + 1, sizeof(*rows));
	size_t count = 0;

	*count_out = 0;
	for (size_t r = 0; r < comparison->row_count; r++) {
		const struct comparison_row *row = &comparison->rows[r];

		if (row->change && level_specs[row->level].has_frames == of_paths &&
		    row_has_values(row))
			rows[count++] = row;
	}
	qsort(rows, count, sizeof(*rows), compare_changes);
	*count_out = count;
	return rows;
}

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
		for (size_t r = 0; r < c->judged_count; r++) {
			is_whole &= !isnan(v.x[r]);
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

/* Finds the factor that all GPU times of a run have in common, and its effect. */
static void effects_find_common(struct comparison *c)
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
		c->common.is_known = true;
		v.is_log = v.is_time = true;
		v.within = NAN;
		for (size_t r = 0; r < c->run_count; r++) {
			v.x[r] = c->runs[r].common;
			v.means[r] = exp(v.x[r]);
		}
		effect_from_runs(&c->common.effect, c, &v);
		c->common.effect.test.p_adjusted = c->common.effect.test.p;
		c->common.effect.test.is_significant = c->common.effect.test.p <= c->alpha;
	}
	run_values_free(&v);
	free_all(deviations, shares, room);
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

/* The variance that a row is expected to have. INFINITY: unknown. noise may be NULL. */
static double prior_of(const struct noise *noise, double within)
{
	const struct noise_sample sample = {.within = within};
	double dof;

	return noise && noise->is_known ? noise_variance(noise, &sample, &dof) : INFINITY;
}

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

		run_values_take(&f->values, f->c, f->metric, &row, 1);
		estimate_make(&f->estimates[i], f->c, &f->values,
			      prior_of(before, f->values.within));
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
			f->p[tested++] = isnan(effect->test.p) ? 1.0 : effect->test.p;
	}
	if (!is_tested_alone(f->level))
		holm_adjust(f->p, f->weights, tested);
	tested = 0;
	for (size_t i = 0; i < f->count; i++) {
		struct comparison_row *row = &c->rows[f->first + i];
		struct effect *effect = &row->effects[f->metric];

		effect->test.p_adjusted = row->is_tested ? f->p[tested++] : 1.0;
		effect->test.is_significant =
			effect->test.p_adjusted <=
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
	free_all(f.estimates, f.samples, f.p, f.weights);
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
	if (value->test.is_significant)
		row->change |= value->net.ratio > 0.0 ? CHANGE_MORE : CHANGE_LESS;
	if (each->test.is_significant)
		row->change |= each->net.ratio > 0.0 ? CHANGE_SLOWER : CHANGE_FASTER;
	if (!count->test.is_significant)
		return;
	if (!(count->base > 0.0))
		row->change |= CHANGE_APPEARED;
	else if (!(count->new > 0.0))
		row->change |= CHANGE_VANISHED;
	else
		row->change |= count->net.ratio > 0.0 ? CHANGE_MORE_OFTEN : CHANGE_LESS_OFTEN;
}

static int compare_rows(const void *a, const void *b)
{
	const struct comparison_row *x = a, *y = b;

	return ORDER(x->level, y->level) ?: ORDER(change_size(y), change_size(x));
}

/* Computes all effects of all rows, and sorts the rows. */
static void effects_compute(struct comparison *c)
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
	qsort(c->rows, c->row_count, sizeof(*c->rows), compare_rows);
}

#define COMMON_NOTED	0.01  /* a common change of this size has a cause worth looking for */
#define COMMON_SHOWN	0.001 /* smaller common changes are no news */
#define RUNS_SHOWN_MAX	100.0
#define CLOCKS_APART	0.005 /* relative clock difference that gets a note */
#define ARGUMENTS_SHOWN 100   /* bytes of the arguments in a note */
#define GOAL		0.03  /* slowdown that runs_needed should detect */

/* The group of a run of history: one for each set of each baseline. */
static size_t find_group(const struct comparison *c, enum side side, const struct run_profile *run)
{
	size_t next = SIDES;

	for (size_t r = c->judged_count; r < c->run_count; r++) {
		const struct compared_run *other = &c->runs[r];

		if (other->side == side && other->profile->history == run->history &&
		    !strcmp(other->profile->origin, run->origin))
			return other->group;
		next = other->group >= next ? other->group + 1 : next;
	}
	return next;
}

static void list_runs(struct comparison *c, const struct run_set sets[SIDES])
{
	for (int history = 0; history < 2; history++) {
		for (int s = 0; s < SIDES; s++) {
			for (size_t i = 0; i < sets[s].count; i++) {
				const struct run_profile *run = sets[s].runs[i];

				if ((run->history > 0) != history)
					continue;
				c->runs[c->run_count] = (struct compared_run){
					.profile = run,
					.side = s,
					.group = history ? find_group(c, s, run) : (size_t)s};
				c->run_count++;
				c->side_counts[s] += !history;
				c->judged_count += !history;
			}
		}
	}
}

static void find_levels(struct comparison *c)
{
	size_t row = 0;

	for (int level = 0; level < LEVELS; level++) {
		c->first_rows[level] = row;
		while (row < c->row_count && (int)c->rows[row].level == level)
			row++;
	}
	c->first_rows[LEVELS] = row;
}

/* Computes how many runs each side needs to detect GOAL in a path of median noise. */
static void set_runs_needed(struct comparison *c)
{
	size_t first = c->first_rows[LEVEL_PATH], last = c->first_rows[LEVEL_PATH + 1], used = 0;
	double *errors = xt_calloc(last - first + 1, sizeof(*errors));
	size_t n[SIDES] = {c->side_counts[SIDE_BASE], c->side_counts[SIDE_NEW]};
	double error, bound;

	c->runs_needed = NAN;
	for (size_t i = first; i < last; i++) {
		const struct effect *effect = &c->rows[i].effects[METRIC_VALUE];

		if (c->rows[i].is_tested && effect->net.error > 0.0)
			errors[used++] = effect->net.error;
	}
	error = median(errors, used);
	free(errors);
	if (!used || !n[SIDE_BASE] || !n[SIDE_NEW])
		return;
	/* The variance of one run. With n runs on each side, the difference has 2/n of it. */
	error *= error / (1.0 / (double)n[SIDE_BASE] + 1.0 / (double)n[SIDE_NEW]);
	bound = student_t_quantile(c->alpha / (double)used, INFINITY) +
		student_t_quantile(0.1, INFINITY);
	c->runs_needed = ceil(fmax(2.0, 2.0 * error * bound * bound / (GOAL * GOAL)));
}

/*
 * Runs made by xtrace bench include GPU clocks. Clocks explain the common change if they differ in
 * the same direction, by at least half as much.
 */
static void set_clocks(struct comparison *c)
{
	double common = log1p(c->common.effect.net.ratio), clocks;

	c->common.clocks_mhz[SIDE_BASE] = c->common.clocks_mhz[SIDE_NEW] = 0.0;
	for (size_t r = 0; r < c->judged_count; r++)
		c->common.clocks_mhz[c->runs[r].side] += c->runs[r].profile->machine.clock_mhz /
							 (double)c->side_counts[c->runs[r].side];
	clocks = log(c->common.clocks_mhz[SIDE_BASE] / c->common.clocks_mhz[SIDE_NEW]);
	c->common.is_of_clocks = c->common.is_known && c->common.effect.test.is_significant &&
				 isfinite(clocks) && clocks * common > 0.0 &&
				 fabs(clocks) >= fabs(common) / 2.0;
}

/* The command line without the program. */
static const char *arguments_of(const struct run_profile *run)
{
	const char *space = strchr(run->command, ' ');

	return space ? space + 1 : "";
}

/* The same program may have run with other arguments. */
static void note_arguments(struct comparison *c)
{
	const char *first = arguments_of(c->runs[0].profile);

	for (size_t r = 1; r < c->judged_count; r++) {
		const char *other = arguments_of(c->runs[r].profile);

		if (!strcmp(first, other))
			continue;
		problems_add(&c->notes, "the runs have different arguments: '%.*s' and '%.*s'",
			     ARGUMENTS_SHOWN, first, ARGUMENTS_SHOWN, other);
		return;
	}
}

/* Without iterations, values of ranges are means only if whole runs were asked for. */
static bool is_by_instance(const struct comparison *c, enum level level)
{
	return (level == LEVEL_RANGE || level == LEVEL_SPAN) && c->run_count &&
	       c->runs[0].profile->iterations.is_whole;
}

const char *comparison_basis(const struct comparison *c, enum level level, const char *key)
{
	if (is_by_instance(c, level))
		return "instance";
	return c->has_iterations && !level_is_of_run(level, key) ? "iteration" : "run";
}

const char *comparison_values(const struct comparison *c)
{
	bool has_ranges = c->first_rows[LEVEL_RANGE] < c->first_rows[LEVEL_SPAN + 1];

	if (c->has_iterations)
		return "one iteration, and peak memory of the run";
	return has_ranges && is_by_instance(c, LEVEL_RANGE)
		       ? "whole runs, and of one instance of each NVTX range"
		       : "whole runs";
}

/* More iterations are one reason for more work. */
static void note_iterations(struct comparison *c, const struct run_set sets[SIDES])
{
	static const char *const names[] = {"BASE", "NEW"};
	struct iteration_counts counts[SIDES];

	for (int s = 0; s < SIDES; s++) {
		counts[s] = check_count_iterations(&sets[s]);
		if (check_counts_differ(counts[s].least, counts[s].most))
			problems_add(&c->notes, "runs of %s have from %llu to %llu iterations",
				     names[s], (unsigned long long)counts[s].least,
				     (unsigned long long)counts[s].most);
	}
	if (check_counts_differ(counts[SIDE_BASE].median, counts[SIDE_NEW].median))
		problems_add(&c->notes,
			     "a run has %llu iterations in BASE and %llu in NEW; values are of %s",
			     (unsigned long long)counts[SIDE_BASE].median,
			     (unsigned long long)counts[SIDE_NEW].median,
			     c->has_iterations ? "one iteration, not of the run"
					       : comparison_values(c));
}

static void write_notes(struct comparison *c, const struct run_set sets[SIDES])
{
	const size_t *n = c->side_counts;
	const struct effect *common = &c->common.effect;
	double ratio = common->net.ratio;

	if (c->runs[0].profile->selection[0])
		problems_add(&c->notes, "the runs are filtered by %s",
			     c->runs[0].profile->selection);
	note_arguments(c);
	note_iterations(c, sets);
	if (c->lacks_wall)
		problems_add(&c->notes,
			     "wall is not compared: %s has a profile of version 1, whose wall "
			     "leaves out the start of the run; record it again",
			     c->lacks_wall->origin);
	if (!c->has_iterations && !c->runs[0].profile->iterations.is_whole)
		problems_add(&c->notes, "no iterations were detected; values are of whole runs");
	if (n[SIDE_BASE] < 3 || n[SIDE_NEW] < 3)
		problems_add(&c->notes,
			     "%zu run%s of BASE and %zu of NEW measure noise poorly; record five "
			     "of each",
			     n[SIDE_BASE], n[SIDE_BASE] == 1 ? "" : "s", n[SIDE_NEW]);
	if (c->common.is_known && common->test.is_significant && fabs(ratio) >= COMMON_SHOWN)
		problems_add(&c->notes,
			     "GPU work present on both sides became %.2g %% %s%s; call paths are "
			     "compared relative to that",
			     fabs(ratio) * 100.0, ratio > 0.0 ? "slower" : "faster",
			     c->common.is_of_clocks ? ", as did the GPU clocks"
			     : fabs(ratio) >= COMMON_NOTED
				     ? " (check the GPU clocks and the machine)"
				     : "");
	if (c->common.is_known && common->test.is_drift && !common->test.is_significant)
		problems_add(&c->notes,
			     "all GPU work is %.2g %% %s than in BASE, but the sets of its "
			     "baseline differ as much",
			     fabs(ratio) * 100.0, ratio > 0.0 ? "slower" : "faster");
	if (fabs(log(c->common.clocks_mhz[SIDE_BASE] / c->common.clocks_mhz[SIDE_NEW])) >
	    CLOCKS_APART)
		problems_add(&c->notes, "mean GPU clock: %.0f MHz in BASE, %.0f MHz in NEW",
			     c->common.clocks_mhz[SIDE_BASE], c->common.clocks_mhz[SIDE_NEW]);
	if (!isnan(c->runs_needed) &&
	    c->runs_needed > (double)(n[SIDE_BASE] < n[SIDE_NEW] ? n[SIDE_BASE] : n[SIDE_NEW]))
		problems_add(&c->notes,
			     "detecting a change of 3 %% in a path of median noise needs %s%.0f "
			     "runs of each side",
			     c->runs_needed > RUNS_SHOWN_MAX ? "more than " : "",
			     fmin(c->runs_needed, RUNS_SHOWN_MAX));
}

void comparison_make(struct comparison *c, const struct run_set sets[SIDES], double alpha)
{
	*c = (struct comparison){
		.alpha = alpha > 0.0 ? alpha : COMPARE_ALPHA,
		.has_iterations = true,
		.runs = xt_calloc(sets[SIDE_BASE].count + sets[SIDE_NEW].count + 1,
				  sizeof(*c->runs)),
	};
	list_runs(c, sets);
	for (size_t r = 0; r < c->run_count; r++)
		c->has_iterations &= run_profile_has_iterations(c->runs[r].profile);
	for (size_t r = c->judged_count; r-- > 0;)
		if (c->runs[r].profile->lacks_wall)
			c->lacks_wall = c->runs[r].profile;
	compare_rows_make(c);
	find_levels(c);
	effects_find_common(c);
	effects_compute(c);
	set_clocks(c);
	set_runs_needed(c);
	write_notes(c, sets);
}

void comparison_free(struct comparison *c)
{
	for (size_t i = 0; i < c->row_count; i++)
		free(c->rows[i].entries);
	free_all(c->rows, c->runs);
	problems_free(&c->notes);
	*c = (struct comparison){0};
}

const struct comparison_row *comparison_find(const struct comparison *c, enum level level,
					     const char *key)
{
	for (size_t i = c->first_rows[level]; i < c->first_rows[level + 1]; i++)
		if (!strcmp(c->rows[i].key, key))
			return &c->rows[i];
	return NULL;
}

bool comparison_measures_noise(const struct comparison *c)
{
	const struct comparison_row *row = comparison_find(c, LEVEL_TOTAL, "gpu-time");

	return row && !isnan(row->effects[METRIC_VALUE].test.p);
}

/*
 * Tests the values of a sum as one row of its level. The noise of single rows describes the noise
 * of a sum only if rows vary independently. If the runs of the sum itself show more noise, use
 * that.
 */
static void test_sum(struct effect *effect, const struct comparison *c,
		     const struct run_values *values, size_t count)
{
	static const struct noise none = {0};
	const struct noise *noise = &c->noises[values->level][values->metric];
	struct estimate estimate;
	struct effect own;

	estimate_make(&estimate, c, values, prior_of(noise, values->within));
	effect_from_estimate(effect, c, values, &estimate, noise, 1.0);
	if (count < 2 || effect->is_exact || effect->is_boundary_shift)
		return;
	effect_from_estimate(&own, c, values, &estimate, &none, 1.0);
	if (own.net.detectable > effect->net.detectable)
		*effect = own;
}

void comparison_sum(const struct comparison *c, enum metric metric,
		    const struct comparison_row *const *rows, size_t count, bool keep_common,
		    struct effect *effect_out)
{
	struct run_values values;

	run_values_init(&values, c);
	if (count) {
		values.keep_common = keep_common;
		run_values_take(&values, c, metric, rows, count);
		if (values.level == LEVEL_TOTAL || keep_common)
			effect_from_runs(effect_out, c, &values);
		else
			test_sum(effect_out, c, &values, count);
		effect_out->test.p_adjusted = effect_out->test.p;
		effect_out->test.is_significant = effect_out->test.p <= c->alpha;
		effect_out->includes_common = keep_common;
	}
	run_values_free(&values);
}

const struct run_profile *comparison_first_run(const struct comparison *c, enum side side)
{
	size_t first = side == SIDE_BASE ? 0 : c->side_counts[SIDE_BASE];

	return c->side_counts[side] ? c->runs[first].profile : NULL;
}
