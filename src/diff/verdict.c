/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules held against a comparison. A rule is broken if the change is worse than it allows and is no chance;
 * it is kept if it can be told that it is kept; else it cannot be judged. docs/DIFF.md says it exactly.
 */
#include "diff/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diff/format.h"
#include "diff/judge.h"
#include "diff/statistics.h"

#define SOFT_DETECTABLE 0.1 /* rules that are default cannot be judged if less is not seen … */
#define ZERO_DETECTABLE 0.1 /* … nor can those that allow no change at all */
#define UNKNOWN_SHARE	0.1 /* of what a rule looks at: rows that cannot be judged may have so much */

const char *const outcome_words[] = {"pass", "regression", "unknown"};

/* The change as a rule sees it: with what is common to everything, if that is no chance. */
struct seen {
	double change, low, high; /* ratio, or in units, as the rule has it */
	double detectable;	  /* likewise */
	bool is_significant;
	bool is_known;
};

static double in_terms_of(const struct rule *rule, const struct effect *effect, double ratio)
{
	if (rule->is_relative)
		return ratio;
	return effect->base > 0.0 ? ratio * effect->base : ratio > 0.0 ? effect->new : 0.0;
}

/* What is common to everything and no chance, as far as the rule is to see it. */
static double common_part(const struct judge *j, const struct rule *rule)
{
	return j->c->common.is_significant && level_specs[rule->level].is_gpu_time &&
			       !rule->is_each && rule->metric != METRIC_COUNT
		       ? j->c->common.judged
		       : 0.0;
}

/* The interval of a change as a rule sees it, as ratios: as unsure as both its parts. */
static void find_bounds(const struct judge *j, const struct rule *rule, const struct effect *effect,
			double *low_out, double *high_out)
{
	const struct effect *all = &j->c->common;
	double common = common_part(j, rule), below, above, all_below, all_above;

	*low_out = effect->low;
	*high_out = effect->high;
	/* (What BASE lacks has no ratio.) */
	if (common == 0.0 || !isfinite(effect->judged))
		return;
	below = effect->judged - effect->low;
	above = effect->high - effect->judged;
	all_below = all->judged - all->low;
	all_above = all->high - all->judged;
	*low_out = effect->judged + common - sqrt(below * below + all_below * all_below);
	*high_out = effect->judged + common + sqrt(above * above + all_above * all_above);
}

static struct seen look(const struct judge *j, const struct rule *rule, const struct effect *effect)
{
	double common = common_part(j, rule), low, high;
	struct seen seen = {.is_known = !isnan(effect->p)};

	seen.change = in_terms_of(rule, effect, effect->judged + common);
	find_bounds(j, rule, effect, &low, &high);
	seen.low = in_terms_of(rule, effect, low);
	seen.high = in_terms_of(rule, effect, high);
	seen.detectable = in_terms_of(rule, effect, effect->detectable);
	/* (What is on one side alone is no slower for everything else being so.) */
	seen.is_significant =
		effect->is_significant || (common != 0.0 && !effect->is_exact && seen.low > 0.0);
	/* (Rows without base have no ratio, but a value.) */
	if (!rule->is_relative && !(effect->base > 0.0))
		seen.change = effect->change;
	return seen;
}

static enum outcome judge_limit(const struct judge *j, const struct rule *rule,
				const struct effect *effect)
{
	struct seen seen = look(j, rule, effect);
	double limit = rule->limit;

	/* (What a piece takes is not a number where there is none.) */
	if (!(effect->new > 0.0) && (rule->metric == METRIC_EACH || !(effect->base > 0.0)))
		return OUTCOME_PASS;
	if (effect->is_cut)
		return OUTCOME_PASS;
	if (!seen.is_known)
		return OUTCOME_UNKNOWN;
	if (seen.change > 0.0 && seen.change > limit) {
		if (seen.is_significant)
			return OUTCOME_FAIL;
		/* Runs that do not vary do not say that it is noise, either; nor do those of which two tests say
		 * different things. */
		if (effect->is_exact || (!rule->is_each && seen.low > 0.0))
			return OUTCOME_UNKNOWN;
	}
	if (rule->is_soft)
		limit = rule->is_relative ? SOFT_DETECTABLE : 0.0;
	/* (Not one more: if NEW has more than any run of BASE, it is no noise of BASE.) */
	if (!rule->is_soft && limit == 0.0 && rule->metric == METRIC_COUNT &&
	    !effect->is_significant && effect->new > effect->base_max)
		return OUTCOME_UNKNOWN;
	if (limit > 0.0 && seen.high > limit && seen.detectable > limit)
		return OUTCOME_UNKNOWN;
	/* (Nothing is always found; but who sees next to nothing says nothing.) */
	if (!rule->is_soft && limit == 0.0 && seen.high > 0.0 &&
	    effect->detectable > ZERO_DETECTABLE)
		return OUTCOME_UNKNOWN;
	return OUTCOME_PASS;
}

/*
 * How far the value of NEW may be from its mean: it is as sure as the runs agree, with what all paths have in common. NAN: that
 * is not known.
 */
static double budget_bound(const struct judge *j, const struct rule *rule,
			   const struct effect *effect)
{
	const struct effect *common = &j->c->common;
	/* Of the error of a difference, what the new side has of it. */
	double share = (double)j->c->side_counts[SIDE_BASE] /
		       (double)(j->c->side_counts[SIDE_BASE] + j->c->side_counts[SIDE_NEW]);
	double error = effect->error, freedom = effect->freedom;

	if ((effect->is_cut || !(effect->base > 0.0)) && effect->new > 0.0)
		return isnan(effect->own_error) ? NAN
						: student_bound(j->c->alpha, effect->own_freedom) *
							  effect->own_error * effect->new;
	if (isnan(error) || isnan(effect->new))
		return NAN;
	if (effect->is_exact || !(error > 0.0))
		return 0.0;
	if (j->c->is_common_known && level_specs[rule->level].is_gpu_time &&
	    rule->metric != METRIC_COUNT && common->error > 0.0) {
		error = sqrt(error * error + common->error * common->error);
		freedom = fmin(freedom, common->freedom);
	}
	return student_bound(j->c->alpha, freedom) * error * sqrt(share) * effect->new;
}

static enum outcome judge_budget(const struct judge *j, const struct rule *rule,
				 const struct effect *effect)
{
	double bound = budget_bound(j, rule, effect);

	if (isnan(bound))
		return OUTCOME_UNKNOWN;
	if (effect->new - bound >= rule->limit)
		return OUTCOME_FAIL;
	return effect->new + bound < rule->limit ? OUTCOME_PASS : OUTCOME_UNKNOWN;
}

static bool is_on_both_sides(const struct effect *effect)
{
	return effect->base > 0.0 && effect->new > 0.0;
}

static char *describe(const struct judge *j, const struct rule *rule, const struct effect *effect,
		      enum unit unit, enum outcome outcome)
{
	double common = common_part(j, rule), low_ratio, high_ratio;
	/* (What is common and may be chance is taken away, however large.) */
	bool beside = fabs(effect->ratio - effect->judged) > effect->detectable;
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], ratio[AMOUNT_BYTES], low[AMOUNT_BYTES];
	char high[AMOUNT_BYTES], seen[AMOUNT_BYTES], judged[AMOUNT_BYTES], *text;
	/* (What is far out, and what is common, are not judged: the interval may lie elsewhere.) */
	bool apart;
	int length;

	find_bounds(j, rule, effect, &low_ratio, &high_ratio);
	apart = effect->ratio < low_ratio || effect->ratio > high_ratio;
	format_amount(base, unit, effect->base);
	format_amount(new, unit, effect->new);
	format_ratio(ratio, effect->ratio);
	format_ratio(low, low_ratio);
	format_ratio(high, high_ratio);
	format_percent(seen, effect->detectable);
	if (rule->kind == RULE_BUDGET)
		length =
			asprintf(&text, "%s, within %s of it", new,
				 format_percent(seen, budget_bound(j, rule, effect) / effect->new));
	else if (isnan(effect->base) && !isnan(effect->new))
		length = asprintf(&text, "%s, new: there is nothing to compare it with", new);
	else if (isnan(effect->new) && !isnan(effect->base))
		length = asprintf(&text, "%s, gone", base);
	else if (isnan(effect->p))
		length = asprintf(&text, "%s -> %s, %s: too few runs to tell noise from change",
				  base, new, ratio);
	else if (effect->is_cut)
		length = asprintf(&text,
				  "%s -> %s, %s: as often in all of a run; warm-up ends at "
				  "different places",
				  base, new, ratio);
	else if (effect->is_exact)
		length = asprintf(&text, "%s -> %s, %s, %s", base, new, ratio,
				  effect->change == 0.0	       ? "the same in each run"
				  : outcome == OUTCOME_UNKNOWN ? "but in too few runs to be sure"
				  : !is_on_both_sides(effect)  ? "in each run"
							       : "the same in each run of a side");
	else if (outcome == OUTCOME_PASS && !effect->is_significant)
		length = asprintf(&text, "%s -> %s, %s%s%s%s: no more than noise; could see %s",
				  base, new, ratio, beside ? " (" : "",
				  beside ? format_ratio(low, effect->judged) : "",
				  beside ? " beside what everything on the GPU has)" : "", seen);
	else
		length = asprintf(&text, "%s -> %s, %s (%s%s%sbetween %s and %s); could see %s",
				  base, new, ratio, apart ? "judged: " : "",
				  apart ? format_ratio(judged, effect->judged + common) : "",
				  apart ? ", " : "", low, high, seen);
	return length < 0 ? NULL : text;
}

static char *name_row(const struct rule *rule, const struct comparison_row *row)
{
	char *name = row && rule->is_each ? format_row(row, SIZE_MAX) : NULL, *text;
	int length;

	if (name)
		length = asprintf(&text, "%s(%s)", level_specs[row->level].word, name);
	else if (rule->pattern)
		length = asprintf(&text, "%s(%s)", level_specs[rule->level].word, rule->pattern);
	else
		length = asprintf(&text, "%s", rule->name);
	free(name);
	return length < 0 ? NULL : text;
}

/* An allowance that covers the change of a row, or NULL. *is_over: one did, until its day had passed. */
static const struct rule *find_row_allowance(const struct judge *j, const struct rule *rule,
					     const struct comparison_row *row,
					     const struct effect *effect, bool *is_over)
{
	for (size_t r = 0; r < j->rules->count; r++) {
		const struct rule *allowed = &j->rules->list[r];

		/* (What it takes says nothing of how often it is, and so on.) */
		if (allowed->kind != RULE_ALLOW || allowed->metric != rule->metric ||
		    !judge_row_fits(allowed, row) ||
		    in_terms_of(allowed, effect, effect->ratio) > allowed->limit)
			continue;
		if (!allowed->until || time(NULL) <= allowed->until)
			return allowed;
		*is_over = true;
	}
	return NULL;
}

/* The same of all rows that the rule looks at, if it is about their sum. */
static const struct rule *find_allowance(const struct judge *j, const struct rule *rule,
					 const struct comparison_row *row,
					 const struct effect *effect, bool *is_over)
{
	const struct rule *allowed = NULL;

	*is_over = false;
	if (rule->kind == RULE_BUDGET)
		return NULL;
	if (row)
		return find_row_allowance(j, rule, row, effect, is_over);
	for (size_t i = 0; i < j->count; i++) {
		allowed = find_row_allowance(j, rule, &j->c->rows[j->rows[i]], effect, is_over);
		if (!allowed)
			return NULL;
	}
	return allowed;
}

static int add_finding(struct judge *j, const struct rule *rule, const struct comparison_row *row,
		       const struct effect *effect, enum outcome outcome)
{
	struct verdict *v = j->verdict;
	struct finding *finding;
	bool is_over = false;

	if (v->finding_count == v->finding_capacity) {
		size_t capacity = v->finding_capacity * 2 + 16;
		struct finding *larger = reallocarray(v->findings, capacity, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		v->findings = larger;
		v->finding_capacity = capacity;
	}
	finding = &v->findings[v->finding_count];
	*finding = (struct finding){
		.row = row,
		.metric = rule->metric,
		.outcome = outcome,
		.effect = *effect,
		.what = name_row(rule, row),
	};
	if (outcome == OUTCOME_FAIL)
		finding->allowed_by = find_allowance(j, rule, row, effect, &is_over);
	if (finding->allowed_by)
		finding->outcome = OUTCOME_PASS;
	finding->why = describe(j, rule, effect, format_unit(&j->c->rows[j->rows[0]], rule->metric),
				outcome);
	if (finding->why && is_over && !finding->allowed_by) {
		char *longer;

		if (asprintf(&longer, "%s; the day until which it was allowed has passed",
			     finding->why) < 0)
			longer = NULL;
		free(finding->why);
		finding->why = longer;
	}
	v->finding_count++;
	return finding->what && finding->why ? 0 : -ENOMEM;
}

/* Does the rule look at GPU time in all, which the clocks of the GPU change? */
static bool goes_with_clocks(const struct rule *rule)
{
	if (rule->level == LEVEL_TOTAL)
		return !strcmp(rule->name, "gpu-time") || !strcmp(rule->name, "gpu-busy");
	return level_specs[rule->level].is_gpu_time && !rule->is_each &&
	       rule->metric != METRIC_COUNT;
}

static enum outcome judge_effect(const struct judge *j, const struct rule *rule,
				 const struct effect *effect)
{
	enum outcome outcome = rule->kind == RULE_BUDGET ? judge_budget(j, rule, effect)
							 : judge_limit(j, rule, effect);

	/* (Not the program's doing, but no pass, either. It has to be half of this change, not of the common one.) */
	if (outcome == OUTCOME_FAIL && j->c->is_clocks && goes_with_clocks(rule) &&
	    log(j->c->clocks_mhz[SIDE_BASE] / j->c->clocks_mhz[SIDE_NEW]) >=
		    log1p(effect->ratio) / 2.0)
		return OUTCOME_UNKNOWN;
	return outcome;
}

/* Every row by itself. The share of them that could not be judged decides whether it is a pass. */
static int judge_each(struct judge *j, const struct rule *rule, struct rule_result *result)
{
	double unknown_share = 0.0, weighted = 0.0, shares = 0.0, all = 0.0;
	size_t tested = 0, failed = 0, unknown = 0, unsure = 0;
	char seen[AMOUNT_BYTES];
	int error = 0;

	for (size_t i = 0; i < j->count && !error; i++) {
		const struct comparison_row *row = &j->c->rows[j->rows[i]];
		const struct effect *effect = &row->effects[rule->metric];
		enum outcome outcome;

		all += row->share;
		if (!row->is_tested)
			continue;
		tested++;
		outcome = judge_effect(j, rule, effect);
		if (outcome == OUTCOME_UNKNOWN) {
			unknown_share += row->share;
			unknown++;
			unsure += effect->is_exact;
		}
		if (!isnan(effect->detectable) && !isinf(effect->detectable)) {
			weighted += row->share * effect->detectable;
			shares += row->share;
		}
		if (outcome == OUTCOME_PASS)
			continue;
		error = add_finding(j, rule, row, effect, outcome);
		if (!error &&
		    j->verdict->findings[j->verdict->finding_count - 1].outcome == OUTCOME_FAIL)
			failed++;
	}
	result->outcome =
		failed ? OUTCOME_FAIL
		: unsure || unknown_share > UNKNOWN_SHARE * all || (tested && unknown == tested)
			? OUTCOME_UNKNOWN
			: OUTCOME_PASS;
	result->detectable = shares > 0.0 ? weighted / shares : NAN;
	format_percent(seen, result->detectable);
	/* (Counts mostly do not vary: a mean of what could be seen of them says nothing.) */
	if (!error &&
	    asprintf(&result->text, "%zu of %zu are worse, %zu cannot be judged%s%s%s", failed,
		     tested, unknown, rule->metric == METRIC_COUNT ? "" : "; could see ",
		     rule->metric == METRIC_COUNT ? "" : seen,
		     rule->metric == METRIC_COUNT ? "" : " in the mean") < 0) {
		result->text = NULL;
		error = -ENOMEM;
	}
	return error;
}

static int judge_sum(struct judge *j, const struct rule *rule, struct rule_result *result)
{
	const struct comparison_row *row = j->count == 1 ? &j->c->rows[j->rows[0]] : NULL;
	struct effect effect;
	int error = row ? 0 : comparison_sum(j->c, rule->metric, j->rows, j->count, &effect);

	if (error)
		return error;
	if (row) {
		/* (Asked for by name, it is one question, whatever else is in its level.) */
		effect = row->effects[rule->metric];
		effect.is_significant = effect.p <= j->c->alpha;
	}
	result->outcome = judge_effect(j, rule, &effect);
	result->detectable = effect.detectable;
	result->text =
		describe(j, rule, &effect, format_unit(&j->c->rows[j->rows[0]], rule->metric),
			 result->outcome);
	if (!result->text)
		return -ENOMEM;
	if (result->outcome == OUTCOME_PASS)
		return 0;
	error = add_finding(j, rule, row, &effect, result->outcome);
	if (!error)
		result->outcome = j->verdict->findings[j->verdict->finding_count - 1].outcome;
	return error;
}

static int compare_findings(const void *a, const void *b)
{
	static const int order[] = {[OUTCOME_FAIL] = 0, [OUTCOME_UNKNOWN] = 1, [OUTCOME_PASS] = 2};
	const struct finding *x = a, *y = b;
	/* (What has no change comes last.) */
	double dx = isnan(x->effect.change) ? -INFINITY : x->effect.change;
	double dy = isnan(y->effect.change) ? -INFINITY : y->effect.change;

	if (x->outcome != y->outcome)
		return order[x->outcome] - order[y->outcome];
	return dx > dy ? -1 : dx < dy;
}

static int judge_rule(struct judge *j, const struct rule *rule)
{
	struct verdict *v = j->verdict;
	struct rule_result *result = &v->results[v->result_count++];
	const char *missing;
	int error;

	*result = (struct rule_result){
		.rule = rule, .first_finding = v->finding_count, .detectable = NAN};
	judge_find_rows(j, rule);
	if (!j->count) {
		result->outcome = rule->is_soft ? OUTCOME_PASS : OUTCOME_UNKNOWN;
		result->text = strdup(j->has_ignored ? "all that it fits is ignored"
						     : "there is no such thing in either side");
		if (!rule->is_soft)
			problems_add(&v->problems, "%s: '%s': %s", rule->origin, rule->text,
				     j->has_ignored ? "all that it fits is ignored"
						    : "fits nothing in either side");
		return result->text ? 0 : -ENOMEM;
	}
	missing = judge_find_missing(j, rule);
	if (missing) {
		problems_add(&v->problems, "%s: '%s' fits nothing in %s", rule->origin, rule->text,
			     missing);
		result->outcome = OUTCOME_UNKNOWN;
		return asprintf(&result->text, "there is no such thing in %s", missing) < 0
			       ? -ENOMEM
			       : 0;
	}
	error = rule->is_each ? judge_each(j, rule, result) : judge_sum(j, rule, result);
	result->finding_count = v->finding_count - result->first_finding;
	if (result->finding_count)
		qsort(v->findings + result->first_finding, result->finding_count,
		      sizeof(*v->findings), compare_findings);
	return error;
}

static enum outcome overall(const struct verdict *v)
{
	bool is_unknown = false;

	if (v->problems.count)
		return OUTCOME_UNKNOWN;
	for (size_t r = 0; r < v->result_count; r++) {
		if (v->results[r].outcome == OUTCOME_FAIL)
			return OUTCOME_FAIL;
		is_unknown |= v->results[r].outcome == OUTCOME_UNKNOWN;
	}
	return is_unknown ? OUTCOME_UNKNOWN : OUTCOME_PASS;
}

int verdict_make(struct verdict *v, const struct comparison *c, const struct rules *rules,
		 struct problems *problems)
{
	struct judge j = {.verdict = v, .c = c, .rules = rules};
	int error = 0;

	*v = (struct verdict){.problems = *problems};
	*problems = (struct problems){0};
	if (c) {
		j.rows = calloc(c->row_count + 1, sizeof(*j.rows));
		v->results = calloc(rules->count + 1, sizeof(*v->results));
		error = j.rows && v->results ? 0 : -ENOMEM;
	}
	for (size_t r = 0; c && r < rules->count && !error; r++)
		if (rules->list[r].kind == RULE_LIMIT || rules->list[r].kind == RULE_BUDGET)
			error = judge_rule(&j, &rules->list[r]);
	if (c && !v->result_count)
		problems_add(&v->problems, "there is no rule to judge by");
	free(j.rows);
	v->outcome = overall(v);
	return error;
}

void verdict_free(struct verdict *v)
{
	for (size_t r = 0; r < v->result_count; r++)
		free(v->results[r].text);
	for (size_t f = 0; f < v->finding_count; f++) {
		free(v->findings[f].what);
		free(v->findings[f].why);
	}
	free(v->results);
	free(v->findings);
	problems_free(&v->problems);
	*v = (struct verdict){0};
}
