/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule held against an effect. It is broken if the change is worse than it allows and is no chance;
 * it is kept if it can be told that it is kept; else it cannot be judged. docs/internals/DIFF_METHOD.md says it exactly.
 */
#include "diff/rules/rule_eval.h"

#include <math.h>
#include <string.h>

#include "diff/stats/statistics.h"

#define SOFT_LIMIT	0.1 /* rules that are default cannot be judged if less is not view … */
#define ZERO_DETECTABLE 0.1 /* … nor can those that allow no change at all */
#define NEW_RUNS_MIN	2   /* that have what no run of BASE has */

const char *const outcome_words[] = {"pass", "regression", "unknown"};

/* The change as a rule sees it: with what is common to everything, if that is no chance. */
struct rule_view {
	double change, low, high; /* ratio, or in units, as the rule has it */
	double detectable;	  /* likewise */
	bool is_significant;
	bool is_known;
};

double rule_convert_ratio(const struct rule *rule, const struct effect *effect, double ratio)
{
	if (rule->is_relative)
		return ratio;
	return effect->base > 0.0 ? ratio * effect->base : ratio > 0.0 ? effect->new : 0.0;
}

/* Is what is common to everything part of what the rule sees? */
static bool includes_common_change(const struct rule *rule)
{
	return level_specs[rule->level].is_gpu_time && !rule->is_each &&
	       rule->metric != METRIC_COUNT;
}

double rule_common_change(const struct comparison *c, const struct rule *rule,
			  const struct effect *effect)
{
	return !effect->includes_common && c->common.is_significant && includes_common_change(rule)
		       ? c->common.net_ratio
		       : 0.0;
}

void rule_change_bounds(const struct comparison *c, const struct rule *rule,
			const struct effect *effect, double *low_out, double *high_out)
{
	const struct effect *all = &c->common;
	double common = rule_common_change(c, rule, effect), below, above, all_below, all_above;

	*low_out = effect->low;
	*high_out = effect->high;
	/* (What BASE lacks has no ratio.) */
	if (common == 0.0 || !isfinite(effect->net_ratio))
		return;
	below = effect->net_ratio - effect->low;
	above = effect->high - effect->net_ratio;
	all_below = all->net_ratio - all->low;
	all_above = all->high - all->net_ratio;
	*low_out = effect->net_ratio + common - sqrt(below * below + all_below * all_below);
	*high_out = effect->net_ratio + common + sqrt(above * above + all_above * all_above);
}

double rule_detectable(const struct comparison *c, const struct rule *rule,
		       const struct effect *effect)
{
	double own = effect->detectable, all = c->common.detectable;

	/* (As the bounds: as unsure as both parts.) */
	return rule_common_change(c, rule, effect) == 0.0 || !isfinite(effect->net_ratio)
		       ? own
		       : sqrt(own * own + all * all);
}

double rule_effective_limit(const struct rule *rule)
{
	if (!rule->is_soft)
		return rule->limit;
	return rule->is_relative ? SOFT_LIMIT : 0.0;
}

static struct rule_view view_effect(const struct comparison *c, const struct rule *rule,
				    const struct effect *effect)
{
	double common = rule_common_change(c, rule, effect), low, high;
	struct rule_view view = {.is_known = !isnan(effect->p)};

	view.change = rule_convert_ratio(rule, effect, effect->net_ratio + common);
	rule_change_bounds(c, rule, effect, &low, &high);
	view.low = rule_convert_ratio(rule, effect, low);
	view.high = rule_convert_ratio(rule, effect, high);
	view.detectable = rule_convert_ratio(rule, effect, rule_detectable(c, rule, effect));
	/* (What is on one side alone is no slower for everything else being so.) */
	view.is_significant =
		effect->is_significant || (common != 0.0 && !effect->is_exact && view.low > 0.0);
	/* (Rows without base have no ratio, but a value.) */
	if (!rule->is_relative && !(effect->base > 0.0))
		view.change = effect->change;
	return view;
}

/* What is asked of an effect. */
struct question {
	const struct comparison *c;
	const struct rule *rule;
	const struct effect *effect;
	struct rule_view view;
};

static bool exceeds_limit(const struct question *q)
{
	return q->view.change > 0.0 && q->view.change > q->rule->limit;
}

/* (What a piece takes is not a number where there is none.) */
static bool is_nothing(const struct question *q)
{
	return !(q->effect->new > 0.0) &&
	       (q->rule->metric == METRIC_EACH || !(q->effect->base > 0.0));
}

static bool is_boundary_shift(const struct question *q)
{
	return q->effect->is_boundary_shift;
}

static bool is_not_known(const struct question *q)
{
	return !q->view.is_known;
}

static bool is_broken(const struct question *q)
{
	return exceeds_limit(q) && q->view.is_significant;
}

/* Runs that do not vary do not say that it is noise, either. */
static bool is_in_few_runs(const struct question *q)
{
	return exceeds_limit(q) && q->effect->is_exact;
}

/* No run of BASE has it, and it is no accident of one of NEW, or of a few, if it is seldom in these, too. */
static bool is_new_in_some(const struct question *q)
{
	uint32_t runs = q->effect->new_runs;

	return exceeds_limit(q) && !(q->effect->base > 0.0) && runs >= NEW_RUNS_MIN &&
	       (!q->effect->is_rare || 2 * runs >= q->c->side_counts[SIDE_NEW]);
}

/* The runs say change, the order of them, or other days, chance. */
static bool is_disputed(const struct question *q)
{
	return exceeds_limit(q) &&
	       ((!q->rule->is_each && q->effect->is_disputed) || q->effect->is_drift);
}

/* Everything changed by more than runs do, which is not counted here since days do, too. */
static bool is_common_drift(const struct question *q)
{
	const struct effect *all = &q->c->common;
	double with_all = q->effect->net_ratio + all->net_ratio;

	return all->is_drift && !q->effect->includes_common && includes_common_change(q->rule) &&
	       isfinite(with_all) &&
	       rule_convert_ratio(q->rule, q->effect, with_all) > q->rule->limit;
}

/* Not one more: if NEW has more than any run of BASE, it is no noise of BASE. (Times always vary.) */
static bool is_more_than_any(const struct question *q)
{
	return !q->rule->is_soft && q->rule->limit == 0.0 && !q->effect->is_time &&
	       q->rule->metric != METRIC_EACH && !q->effect->is_significant &&
	       q->effect->new > q->effect->base_max;
}

/* The runs are too noisy for the limit. (Nothing is always found; but who sees next to nothing says nothing.) */
static bool is_too_noisy(const struct question *q)
{
	double limit = rule_effective_limit(q->rule);

	if (limit > 0.0)
		return q->view.high > limit && q->view.detectable > limit;
	return !q->rule->is_soft && q->view.high > 0.0 &&
	       rule_detectable(q->c, q->rule, q->effect) > ZERO_DETECTABLE;
}

/* What is said of a change: by the first of these that it is, else that the rule is kept. */
static const struct {
	bool (*is_so)(const struct question *q);
	enum outcome outcome;
	bool is_decisive; /* of a rule about many rows, one such row decides */
} outcomes[] = {
	{is_nothing, OUTCOME_PASS, false},	    {is_boundary_shift, OUTCOME_PASS, false},
	{is_not_known, OUTCOME_UNKNOWN, false},	    {is_broken, OUTCOME_FAIL, true},
	{is_in_few_runs, OUTCOME_UNKNOWN, true},    {is_new_in_some, OUTCOME_UNKNOWN, true},
	{is_disputed, OUTCOME_UNKNOWN, false},	    {is_common_drift, OUTCOME_UNKNOWN, false},
	{is_more_than_any, OUTCOME_UNKNOWN, false}, {is_too_noisy, OUTCOME_UNKNOWN, false},
};

static enum outcome evaluate_limit(const struct comparison *c, const struct rule *rule,
				   const struct effect *effect, bool *is_decisive)
{
	const struct question question = {c, rule, effect, view_effect(c, rule, effect)};

	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		if (!outcomes[i].is_so(&question))
			continue;
		*is_decisive = outcomes[i].is_decisive;
		return outcomes[i].outcome;
	}
	return OUTCOME_PASS;
}

double rule_budget_margin(const struct comparison *c, const struct rule *rule,
			  const struct effect *effect)
{
	const struct effect *common = &c->common;
	/* Of the error of a difference, what the new side has of it. */
	double share = (double)c->side_counts[SIDE_BASE] /
		       (double)(c->side_counts[SIDE_BASE] + c->side_counts[SIDE_NEW]);
	double error = effect->error, dof = effect->dof;

	if ((effect->is_boundary_shift || !(effect->base > 0.0)) && effect->new > 0.0)
		return isnan(effect->own_error) ? NAN
						: student_t_quantile(c->alpha, effect->own_dof) *
							  effect->own_error * effect->new;
	if (isnan(error) || isnan(effect->new))
		return NAN;
	if (effect->is_exact || !(error > 0.0))
		return 0.0;
	if (!effect->includes_common && c->is_common_known &&
	    level_specs[rule->level].is_gpu_time && rule->metric != METRIC_COUNT &&
	    common->error > 0.0) {
		error = sqrt(error * error + common->error * common->error);
		dof = fmin(dof, common->dof);
	}
	return student_t_quantile(c->alpha, dof) * error * sqrt(share) * effect->new;
}

static enum outcome evaluate_budget(const struct comparison *c, const struct rule *rule,
				    const struct effect *effect)
{
	double bound = rule_budget_margin(c, rule, effect);

	if (isnan(bound))
		return OUTCOME_UNKNOWN;
	if (effect->new - bound >= rule->limit)
		return OUTCOME_FAIL;
	return effect->new + bound < rule->limit ? OUTCOME_PASS : OUTCOME_UNKNOWN;
}

/* Does the rule look at GPU time in all, which the clocks of the GPU change? */
static bool goes_with_clocks(const struct rule *rule)
{
	if (rule->level == LEVEL_TOTAL)
		return !strcmp(rule->name, "gpu-time") || !strcmp(rule->name, "gpu-busy");
	return includes_common_change(rule);
}

enum outcome rule_evaluate(const struct comparison *c, const struct rule *rule,
			   const struct effect *effect, bool *is_decisive_out)
{
	bool is_decisive = false;
	enum outcome outcome = rule->kind == RULE_BUDGET
				       ? evaluate_budget(c, rule, effect)
				       : evaluate_limit(c, rule, effect, &is_decisive);

	if (is_decisive_out)
		*is_decisive_out = is_decisive;

	/* (Not the program's doing, but no pass, either. It has to be half of this change, not of the common one.) */
	if (outcome == OUTCOME_FAIL && rule->kind == RULE_LIMIT && c->is_clock_change &&
	    goes_with_clocks(rule) &&
	    log(c->clocks_mhz[SIDE_BASE] / c->clocks_mhz[SIDE_NEW]) >= log1p(effect->ratio) / 2.0)
		return OUTCOME_UNKNOWN;
	return outcome;
}
