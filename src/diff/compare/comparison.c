/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All steps of a comparison, and the notes about it.
 */
#include "diff/compare/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/load/check_runs.h"
#include "diff/compare/effects.h"
#include "diff/compare/estimate.h"
#include "diff/compare/compare_rows.h"
#include "diff/stats/statistics.h"
#include "log/base/weighted_median.h"

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

	for (size_t r = 0; r < c->run_count; r++) {
		const struct compared_run *other = &c->runs[r];

		if (!other->is_history)
			continue;
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
					.is_history = history,
					.group = history ? find_group(c, s, run) : (size_t)s};
				c->run_count++;
				c->side_counts[s] += !history;
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

		if (c->rows[i].is_tested && effect->error > 0.0)
			errors[used++] = effect->error;
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
	double common = log1p(c->common.net_ratio), clocks;

	c->clocks_mhz[SIDE_BASE] = c->clocks_mhz[SIDE_NEW] = 0.0;
	for (size_t r = 0; r < c->run_count; r++)
		if (!c->runs[r].is_history)
			c->clocks_mhz[c->runs[r].side] += c->runs[r].profile->clock_mhz /
							  (double)c->side_counts[c->runs[r].side];
	clocks = log(c->clocks_mhz[SIDE_BASE] / c->clocks_mhz[SIDE_NEW]);
	c->is_clock_change = c->is_common_known && c->common.is_significant && isfinite(clocks) &&
			     clocks * common > 0.0 && fabs(clocks) >= fabs(common) / 2.0;
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

	for (size_t r = 1; r < c->run_count; r++) {
		const char *other = arguments_of(c->runs[r].profile);

		if (c->runs[r].is_history || !strcmp(first, other))
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
	       c->runs[0].profile->is_whole;
}

const char *comparison_basis(const struct comparison *c, enum level level, const char *key)
{
	bool is_of_run = level == LEVEL_MEMORY ||
			 (level == LEVEL_TOTAL &&
			  (!strcmp(key, "peak-memory") || !strcmp(key, "iterations")));

	if (is_by_instance(c, level))
		return "instance";
	return c->has_iterations && !is_of_run ? "iteration" : "run";
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
	double ratio = c->common.net_ratio;

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
	if (!c->has_iterations && !c->runs[0].profile->is_whole)
		problems_add(&c->notes, "no iterations were detected; values are of whole runs");
	if (n[SIDE_BASE] < 3 || n[SIDE_NEW] < 3)
		problems_add(&c->notes,
			     "%zu run%s of BASE and %zu of NEW measure noise poorly; record five "
			     "of each",
			     n[SIDE_BASE], n[SIDE_BASE] == 1 ? "" : "s", n[SIDE_NEW]);
	if (c->is_common_known && c->common.is_significant && fabs(ratio) >= COMMON_SHOWN)
		problems_add(&c->notes,
			     "GPU work present on both sides became %.2g %% %s%s; call paths are "
			     "compared relative "
			     "to that",
			     fabs(ratio) * 100.0, ratio > 0.0 ? "slower" : "faster",
			     c->is_clock_change ? ", as did the GPU clocks"
			     : fabs(ratio) >= COMMON_NOTED
				     ? " (check the GPU clocks and the machine)"
				     : "");
	if (c->is_common_known && c->common.is_drift && !c->common.is_significant)
		problems_add(&c->notes,
			     "all GPU work is %.2g %% %s than in BASE, but the sets of its "
			     "baseline differ as "
			     "much",
			     fabs(ratio) * 100.0, ratio > 0.0 ? "slower" : "faster");
	if (fabs(log(c->clocks_mhz[SIDE_BASE] / c->clocks_mhz[SIDE_NEW])) > CLOCKS_APART)
		problems_add(&c->notes, "mean GPU clock: %.0f MHz in BASE, %.0f MHz in NEW",
			     c->clocks_mhz[SIDE_BASE], c->clocks_mhz[SIDE_NEW]);
	if (!isnan(c->runs_needed) &&
	    c->runs_needed > (double)(n[SIDE_BASE] < n[SIDE_NEW] ? n[SIDE_BASE] : n[SIDE_NEW]))
		problems_add(&c->notes,
			     "detecting a change of 3 %% in a path of median noise needs %s%.0f "
			     "runs of each "
			     "side",
			     c->runs_needed > RUNS_SHOWN_MAX ? "more than " : "",
			     fmin(c->runs_needed, RUNS_SHOWN_MAX));
}

void comparison_make(struct comparison *c, const struct run_set sets[SIDES],
		     const struct compare_options *options)
{
	*c = (struct comparison){
		.alpha = options->alpha > 0.0 ? options->alpha : COMPARE_ALPHA,
		.has_iterations = true,
		.runs = xt_calloc(sets[SIDE_BASE].count + sets[SIDE_NEW].count + 1,
				  sizeof(*c->runs)),
	};
	list_runs(c, sets);
	for (size_t r = 0; r < c->run_count; r++)
		c->has_iterations &= run_profile_has_iterations(c->runs[r].profile);
	for (size_t r = c->run_count; r-- > 0;)
		if (!c->runs[r].is_history && c->runs[r].profile->lacks_wall)
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
	free(c->rows);
	free(c->runs);
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

	return row && !isnan(row->effects[METRIC_VALUE].p);
}

/*
 * The noise of single rows describes the noise of a sum only if rows vary independently. If the
 * runs of the sum itself show more noise, use that.
 */
static void make_sum(struct effect *effect, const struct comparison *c, const struct run_values *v,
		     const struct estimate *estimate, size_t count, const struct noise *noise)
{
	static const struct noise none = {0};
	struct effect own;

	effect_from_estimate(effect, c, v, estimate, noise, 1.0);
	if (count < 2 || effect->is_exact || effect->is_boundary_shift)
		return;
	effect_from_estimate(&own, c, v, estimate, &none, 1.0);
	if (own.detectable > effect->detectable)
		*effect = own;
}

/* Tests the values of a sum: as one row of its level, or as a total. */
static void test_sum(struct effect *effect, const struct comparison *c,
		     const struct run_values *values, size_t count)
{
	const struct noise *noise = &c->noises[values->level][values->metric];
	double prior = INFINITY, dof;
	struct estimate estimate;

	if (values->level == LEVEL_TOTAL || values->keep_common) {
		effect_from_runs(effect, c, values);
		return;
	}
	if (noise->is_known)
		prior = noise_variance(noise, &(struct noise_sample){.within = values->within},
				       &dof);
	estimate_make(&estimate, c, values, prior);
	make_sum(effect, c, values, &estimate, count, noise);
}

void comparison_sum(const struct comparison *c, enum metric metric, const size_t *rows,
		    size_t count, bool keep_common, struct effect *effect_out)
{
	const struct comparison_row **list = xt_calloc(count + 1, sizeof(*list));
	struct run_values values;

	run_values_init(&values, c);
	for (size_t i = 0; i < count; i++)
		list[i] = &c->rows[rows[i]];
	if (count) {
		values.keep_common = keep_common;
		run_values_take(&values, c, metric, list, count);
		test_sum(effect_out, c, &values, count);
		effect_out->p_adjusted = effect_out->p;
		effect_out->is_significant = effect_out->p <= c->alpha;
		effect_out->includes_common = keep_common;
	}
	run_values_free(&values);
	free(list);
}

const struct run_profile *comparison_first_run(const struct comparison *c, enum side side)
{
	for (size_t r = 0; r < c->run_count; r++)
		if (!c->runs[r].is_history && c->runs[r].side == side)
			return c->runs[r].profile;
	return NULL;
}
