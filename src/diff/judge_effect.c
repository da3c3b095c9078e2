/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule held against an effect. It is broken if the change is worse than it allows and is no chance;
 * it is kept if it can be told that it is kept; else it cannot be judged. docs/DIFF.md says it exactly.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diff/format.h"
#include "diff/judge.h"
#include "diff/statistics.h"

#define SOFT_DETECTABLE 0.1 /* rules that are default cannot be judged if less is not seen … */
#define ZERO_DETECTABLE 0.1 /* … nor can those that allow no change at all */

/* The change as a rule sees it: with what is common to everything, if that is no chance. */
struct seen {
	double change, low, high; /* ratio, or in units, as the rule has it */
	double detectable;	  /* likewise */
	bool is_significant;
	bool is_known;
};

double judge_in_terms_of(const struct rule *rule, const struct effect *effect, double ratio)
{
	if (rule->is_relative)
		return ratio;
	return effect->base > 0.0 ? ratio * effect->base : ratio > 0.0 ? effect->new : 0.0;
}

/* What is common to everything and no chance, as far as the rule is to see it. */
static double common_part(const struct judge *j, const struct rule *rule,
			  const struct effect *effect)
{
	return !effect->is_raw && j->c->common.is_significant &&
			       level_specs[rule->level].is_gpu_time && !rule->is_each &&
			       rule->metric != METRIC_COUNT
		       ? j->c->common.judged
		       : 0.0;
}

/* The interval of a change as a rule sees it, as ratios: as unsure as both its parts. */
static void find_bounds(const struct judge *j, const struct rule *rule, const struct effect *effect,
			double *low_out, double *high_out)
{
	const struct effect *all = &j->c->common;
	double common = common_part(j, rule, effect), below, above, all_below, all_above;

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

double judge_detectable(const struct judge *j, const struct rule *rule, const struct effect *effect)
{
	double own = effect->detectable, all = j->c->common.detectable;

	/* (As the bounds: as unsure as both parts.) */
	return common_part(j, rule, effect) == 0.0 || !isfinite(effect->judged)
		       ? own
		       : sqrt(own * own + all * all);
}

static struct seen look(const struct judge *j, const struct rule *rule, const struct effect *effect)
{
	double common = common_part(j, rule, effect), low, high;
	struct seen seen = {.is_known = !isnan(effect->p)};

	seen.change = judge_in_terms_of(rule, effect, effect->judged + common);
	find_bounds(j, rule, effect, &low, &high);
	seen.low = judge_in_terms_of(rule, effect, low);
	seen.high = judge_in_terms_of(rule, effect, high);
	seen.detectable = judge_in_terms_of(rule, effect, judge_detectable(j, rule, effect));
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
		if (effect->is_exact || (!rule->is_each && effect->is_disputed))
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
	    judge_detectable(j, rule, effect) > ZERO_DETECTABLE)
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
	if (!effect->is_raw && j->c->is_common_known && level_specs[rule->level].is_gpu_time &&
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

char *judge_describe(const struct judge *j, const struct rule *rule, const struct effect *effect,
		     enum unit unit, enum outcome outcome)
{
	double common = common_part(j, rule, effect), low_ratio, high_ratio;
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
	format_percent(seen, judge_detectable(j, rule, effect));
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
	else if (!isfinite(low_ratio) && !isfinite(high_ratio))
		length = asprintf(&text, "%s -> %s, %s, in the mean", base, new, ratio);
	else
		length = asprintf(&text, "%s -> %s, %s (%s%s%sbetween %s and %s); could see %s",
				  base, new, ratio, apart ? "judged: " : "",
				  apart ? format_ratio(judged, effect->judged + common) : "",
				  apart ? ", " : "", low, high, seen);
	return length < 0 ? NULL : text;
}

/* Does the rule look at GPU time in all, which the clocks of the GPU change? */
static bool goes_with_clocks(const struct rule *rule)
{
	if (rule->level == LEVEL_TOTAL)
		return !strcmp(rule->name, "gpu-time") || !strcmp(rule->name, "gpu-busy");
	return level_specs[rule->level].is_gpu_time && !rule->is_each &&
	       rule->metric != METRIC_COUNT;
}

enum outcome judge_effect(const struct judge *j, const struct rule *rule,
			  const struct effect *effect)
{
	enum outcome outcome = rule->kind == RULE_BUDGET ? judge_budget(j, rule, effect)
							 : judge_limit(j, rule, effect);

	/* (Not the program's doing, but no pass, either. It has to be half of this change, not of the common one.) */
	if (outcome == OUTCOME_FAIL && rule->kind == RULE_LIMIT && j->c->is_clocks &&
	    goes_with_clocks(rule) &&
	    log(j->c->clocks_mhz[SIDE_BASE] / j->c->clocks_mhz[SIDE_NEW]) >=
		    log1p(effect->ratio) / 2.0)
		return OUTCOME_UNKNOWN;
	return outcome;
}
