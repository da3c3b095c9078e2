/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule fails if the change is significant and exceeds the limit. It passes if noise is small
 * enough to exclude that. Otherwise the outcome is unknown. docs/internals/DIFF_METHOD.md has the
 * details.
 */
#include "diff/rules/rule_eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/base/level.h"
#include "diff/stats/statistics.h"

#define SOFT_LIMIT	0.1 /* limit on the smallest detectable change: default rules with a ratio */
#define ZERO_DETECTABLE 0.1 /* the same for rules that allow no change */
#define NEW_RUNS_MIN	2   /* runs of NEW that show a new row */

const char *const outcome_words[] = {"pass", "regression", "unknown"};

/* The change as the rule sees it, which can include the significant common change. */
struct rule_view {
	double change, low, high; /* a ratio, or an amount */
	double detectable;	  /* the same */
	bool is_significant;
};

double rule_convert_ratio(const struct rule *rule, const struct effect *effect, double ratio)
{
	if (rule->is_relative)
		return ratio;
	return effect->base > 0.0 ? ratio * effect->base : ratio > 0.0 ? effect->new : 0.0;
}

/* Does the rule include the common change of all GPU times? */
static bool includes_common_change(const struct rule *rule)
{
	return level_specs[rule->level].is_gpu_time && !rule->is_each &&
	       rule->metric != METRIC_COUNT;
}

/* The significant change common to all GPU times, if the rule includes it; else 0. */
static double rule_common_change(const struct comparison *c, const struct rule *rule,
				 const struct effect *effect)
{
	return !effect->includes_common && c->common.is_significant && includes_common_change(rule)
		       ? c->common.net_ratio
		       : 0.0;
}

/*
 * The confidence interval of the change that the rule sees, as ratios. Combines both parts' errors.
 */
static void rule_change_bounds(const struct comparison *c, const struct rule *rule,
			       const struct effect *effect, double *low_out, double *high_out)
{
	const struct effect *all = &c->common;
	double common = rule_common_change(c, rule, effect), below, above, all_below, all_above;

	*low_out = effect->low;
	*high_out = effect->high;
	/* A row that BASE lacks has no ratio. */
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

	/* Combine both errors, as rule_change_bounds() does. */
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
	struct rule_view view;

	view.change = rule_convert_ratio(rule, effect, effect->net_ratio + common);
	rule_change_bounds(c, rule, effect, &low, &high);
	view.low = rule_convert_ratio(rule, effect, low);
	view.high = rule_convert_ratio(rule, effect, high);
	view.detectable = rule_convert_ratio(rule, effect, rule_detectable(c, rule, effect));
	/* A common change does not make an exact change significant. */
	view.is_significant =
		effect->is_significant || (common != 0.0 && !effect->is_exact && view.low > 0.0);
	/* A row that BASE lacks has no ratio, but an amount. */
	if (!rule->is_relative && !(effect->base > 0.0))
		view.change = effect->change;
	return view;
}

/*
 * The row is new. It occurs in several runs of NEW. If it is rare there, at least half of the runs
 * have it.
 */
static bool is_new_in_some(const struct comparison *c, const struct effect *effect)
{
	return !(effect->base > 0.0) && effect->new_runs >= NEW_RUNS_MIN &&
	       (!effect->is_rare || 2 * effect->new_runs >= c->side_counts[SIDE_NEW]);
}

/*
 * The common change is significant between runs but not compared with drift, so it is not part of
 * the view.
 */
static bool is_common_drift(const struct comparison *c, const struct rule *rule,
			    const struct effect *effect)
{
	double with_all = effect->net_ratio + c->common.net_ratio;

	return c->common.is_drift && !effect->includes_common && includes_common_change(rule) &&
	       isfinite(with_all) && rule_convert_ratio(rule, effect, with_all) > rule->limit;
}

/* For "> 0": NEW has more than any run of BASE, so it is not noise of BASE. Times always vary. */
static bool is_more_than_any(const struct rule *rule, const struct effect *effect)
{
	return !rule->is_soft && rule->limit == 0.0 && !effect->is_time &&
	       rule->metric != METRIC_EACH && !effect->is_significant &&
	       effect->new > effect->base_max;
}

/* The noise exceeds the limit. */
static bool is_too_noisy(const struct comparison *c, const struct rule *rule,
			 const struct effect *effect, const struct rule_view *view)
{
	double limit = rule_effective_limit(rule);

	if (limit > 0.0)
		return view->high > limit && view->detectable > limit;
	return !rule->is_soft && view->high > 0.0 &&
	       rule_detectable(c, rule, effect) > ZERO_DETECTABLE;
}

/* Sets *is_decisive if one such row decides a rule about many rows. */
static enum outcome evaluate_limit(const struct comparison *c, const struct rule *rule,
				   const struct effect *effect, bool *is_decisive)
{
	const struct rule_view view = view_effect(c, rule, effect);
	bool exceeds = view.change > 0.0 && view.change > rule->limit;

	/* NEW has no items and BASE has none either, or the rule is about the cost per item. */
	if (!(effect->new > 0.0) && (rule->metric == METRIC_EACH || !(effect->base > 0.0)))
		return OUTCOME_PASS;
	if (effect->is_boundary_shift)
		return OUTCOME_PASS;
	if (isnan(effect->p))
		return OUTCOME_UNKNOWN;
	*is_decisive = true;
	if (exceeds && view.is_significant)
		return OUTCOME_FAIL;
	/* Without variation between runs, nothing shows that the change is noise. */
	if (exceeds && (effect->is_exact || is_new_in_some(c, effect)))
		return OUTCOME_UNKNOWN;
	*is_decisive = false;
	/* The permutation test or the drift between sets contradicts a significant change. */
	if (exceeds && ((!rule->is_each && effect->is_disputed) || effect->is_drift))
		return OUTCOME_UNKNOWN;
	return is_common_drift(c, rule, effect) || is_more_than_any(rule, effect) ||
			       is_too_noisy(c, rule, effect, &view)
		       ? OUTCOME_UNKNOWN
		       : OUTCOME_PASS;
}

/* The half-width of the confidence interval of NEW's value. NAN: unknown. */
static double rule_budget_margin(const struct comparison *c, const struct rule *rule,
				 const struct effect *effect)
{
	const struct effect *common = &c->common;
	/* The part of the variance of the difference that comes from NEW. */
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

/* Is the rule about total GPU time, which depends on the GPU clock? */
static bool goes_with_clocks(const struct rule *rule)
{
	if (rule->level == LEVEL_TOTAL)
		return !strcmp(rule->name, "gpu-time") || !strcmp(rule->name, "gpu-busy");
	return includes_common_change(rule);
}

bool rule_varies_in_base(const struct effect *effect)
{
	return effect->base_min < effect->base_max;
}

/*
 * A value that was equal in all runs of BASE fails if it is larger in all runs of NEW. If it is in
 * some of them, it varies after all. One that varies in BASE is not judged, unless it is far above.
 */
static enum outcome evaluate_counting(const struct effect *effect)
{
	if (!(effect->new_min > effect->base_max))
		return OUTCOME_PASS;
	if (!rule_varies_in_base(effect))
		return OUTCOME_FAIL;
	return effect->new_min > 2.0 * effect->base_max - effect->base_min ? OUTCOME_UNKNOWN
									   : OUTCOME_PASS;
}

enum outcome rule_evaluate(const struct comparison *c, const struct rule *rule,
			   const struct effect *effect, bool *is_decisive_out)
{
	bool is_decisive = false;
	enum outcome outcome = rule->is_counting ? evaluate_counting(effect)
			       : rule->kind == RULE_BUDGET
				       ? evaluate_budget(c, rule, effect)
				       : evaluate_limit(c, rule, effect, &is_decisive);

	if (is_decisive_out)
		*is_decisive_out = is_decisive;
	/*
	 * A clock change is no regression of the program, but no pass either. It must explain at
	 * least half of this change.
	 */
	if (outcome == OUTCOME_FAIL && rule->kind == RULE_LIMIT && c->is_clock_change &&
	    goes_with_clocks(rule) &&
	    log(c->clocks_mhz[SIDE_BASE] / c->clocks_mhz[SIDE_NEW]) >= log1p(effect->ratio) / 2.0)
		return OUTCOME_UNKNOWN;
	return outcome;
}

/* Describes a value that one or both sides lack. Returns NULL if neither does. */
static char *describe_missing(const struct comparison *c, const struct effect *effect,
			      enum unit unit)
{
	if (isnan(effect->base) && !isnan(effect->new))
		return xt_asprintf("%s, new: BASE has no value", format_amount(unit, effect->new));
	if (isnan(effect->new) && !isnan(effect->base))
		return xt_asprintf("%s, gone", format_amount(unit, effect->base));
	if (effect->base == 0.0 && effect->new == 0.0)
		return xt_asprintf("none on either side%s",
				   c->has_iterations ? " after warm-up" : "");
	if (effect->base == 0.0 && !effect->is_exact && !effect->is_boundary_shift)
		return xt_asprintf("%s -> %s, new, in %u of %zu runs",
				   format_amount(unit, effect->base),
				   format_amount(unit, effect->new), effect->new_runs,
				   c->side_counts[SIDE_NEW]);
	return NULL;
}

static const char *describe_exact(const struct effect *effect, enum outcome outcome)
{
	if (effect->change == 0.0)
		return ", equal in all runs";
	if (outcome == OUTCOME_UNKNOWN)
		return ", in too few runs to be significant";
	return effect->base > 0.0 && effect->new > 0.0 ? ", equal in all runs of each side"
						       : ", in all runs";
}

/* What is known about a change. */
static char *describe_certainty(const struct comparison *c, const struct rule *rule,
				const struct effect *effect, enum outcome outcome)
{
	const char *detectable = format_percent(rule_detectable(c, rule, effect));
	/* A large common change that may be chance is not part of net_ratio: show both. */
	bool beside = fabs(effect->ratio - effect->net_ratio) > effect->detectable, apart;
	double low, high;

	if (isnan(effect->p))
		return xt_strdup(": too few runs to measure noise");
	if (effect->is_boundary_shift)
		return xt_strdup(": equally often per run; only the end of warm-up differs");
	if (effect->is_exact)
		return xt_strdup(describe_exact(effect, outcome));
	if (outcome == OUTCOME_UNKNOWN && effect->is_drift && !effect->is_significant)
		return xt_asprintf(": within the drift between sets of the baseline; smallest "
				   "detectable change: %s",
				   detectable);
	if (outcome == OUTCOME_PASS && !effect->is_significant)
		return xt_asprintf("%s%s%s: within noise; smallest detectable change: %s",
				   beside ? " (" : "",
				   beside ? format_ratio(effect->net_ratio) : "",
				   beside ? " net of the common change)" : "", detectable);
	rule_change_bounds(c, rule, effect, &low, &high);
	if (!isfinite(low) && !isfinite(high))
		return xt_strdup(", no confidence interval");
	/*
	 * The interval is around net_ratio, which excludes outliers and the common factor. Name it
	 * if the ratio is outside.
	 */
	apart = effect->ratio < low || effect->ratio > high;
	return xt_asprintf(
		" (%s%s%sinterval %s to %s); smallest detectable change: %s", apart ? "net " : "",
		apart ? format_ratio(effect->net_ratio + rule_common_change(c, rule, effect)) : "",
		apart ? ", " : "", format_ratio(low), format_ratio(high), detectable);
}

char *rule_describe(const struct comparison *c, const struct rule *rule,
		    const struct effect *effect, enum unit unit, enum outcome outcome)
{
	char *text, *certainty;

	if (rule->kind == RULE_BUDGET && !(effect->new > 0.0))
		return xt_strdup("none in any run of NEW");
	if (rule->kind == RULE_BUDGET)
		return xt_asprintf(
			"%s +/- %s", format_amount(unit, effect->new),
			format_percent(rule_budget_margin(c, rule, effect) / effect->new));
	text = describe_missing(c, effect, unit);
	if (text)
		return text;
	certainty = describe_certainty(c, rule, effect, outcome);
	text = xt_asprintf("%s -> %s, %s%s", format_amount(unit, effect->base),
			   format_amount(unit, effect->new), format_ratio(effect->ratio),
			   certainty);
	free(certainty);
	return text;
}
