/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describe what a rule found, in words.
 */
#include "diff/rules/rule_describe.h"

#include <math.h>
#include <stdio.h>

#include "diff/base/format.h"

/* Formatted numbers. */
struct shown {
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], ratio[AMOUNT_BYTES];
	char low[AMOUNT_BYTES], high[AMOUNT_BYTES], seen[AMOUNT_BYTES];
};

static int describe_budget(char **text, const struct comparison *c, const struct rule *rule,
			   const struct effect *effect, const struct shown *shown)
{
	char within[AMOUNT_BYTES];

	if (!(effect->new > 0.0))
		return asprintf(text, "none in any run of NEW");
	format_percent(within, rule_budget_margin(c, rule, effect) / effect->new);
	return asprintf(text, "%s +/- %s", shown->new, within);
}

/* Describe a value that one or both sides lack. Returns 0 if neither does. */
static int describe_missing(char **text, const struct comparison *c, const struct effect *effect,
			    const struct shown *shown)
{
	if (isnan(effect->base) && !isnan(effect->new))
		return asprintf(text, "%s, new: BASE has no value", shown->new);
	if (isnan(effect->new) && !isnan(effect->base))
		return asprintf(text, "%s, gone", shown->base);
	if (effect->base == 0.0 && effect->new == 0.0)
		return asprintf(text, "none on either side%s",
				c->has_iterations ? " after warm-up" : "");
	if (effect->base == 0.0 && !effect->is_exact && !effect->is_boundary_shift)
		return asprintf(text, "%s -> %s, new, in %u of %zu runs", shown->base, shown->new,
				effect->new_runs, c->side_counts[SIDE_NEW]);
	return 0;
}

static int describe_exact(char **text, const struct effect *effect, const struct shown *shown,
			  enum outcome outcome)
{
	bool both = effect->base > 0.0 && effect->new > 0.0;

	return asprintf(text, "%s -> %s, %s, %s", shown->base, shown->new, shown->ratio,
			effect->change == 0.0	     ? "equal in all runs"
			: outcome == OUTCOME_UNKNOWN ? "in too few runs to be significant"
			: !both			     ? "in all runs"
						     : "equal in all runs of each side");
}

/* Describe a change that is not significant. */
static int describe_noise(char **text, const struct effect *effect, const struct shown *shown)
{
	/* A large common change that may be chance is not part of net_ratio: show both. */
	bool beside = fabs(effect->ratio - effect->net_ratio) > effect->detectable;
	char net_ratio[AMOUNT_BYTES];

	return asprintf(text, "%s -> %s, %s%s%s%s: within noise; smallest detectable change: %s",
			shown->base, shown->new, shown->ratio, beside ? " (" : "",
			beside ? format_ratio(net_ratio, effect->net_ratio) : "",
			beside ? " net of the common change)" : "", shown->seen);
}

char *rule_describe(const struct comparison *c, const struct rule *rule,
		    const struct effect *effect, enum unit unit, enum outcome outcome)
{
	double low, high;
	/*
	 * The interval is around net_ratio, which excludes outliers and the common factor. Name it
	 * if the ratio is outside.
	 */
	bool apart;
	char net_ratio[AMOUNT_BYTES], *text = NULL;
	struct shown shown;
	int length;

	rule_change_bounds(c, rule, effect, &low, &high);
	apart = effect->ratio < low || effect->ratio > high;
	format_amount(shown.base, unit, effect->base);
	format_amount(shown.new, unit, effect->new);
	format_ratio(shown.ratio, effect->ratio);
	format_ratio(shown.low, low);
	format_ratio(shown.high, high);
	format_percent(shown.seen, rule_detectable(c, rule, effect));
	format_ratio(net_ratio, effect->net_ratio + rule_common_change(c, rule, effect));
	if (rule->kind == RULE_BUDGET)
		length = describe_budget(&text, c, rule, effect, &shown);
	else
		length = describe_missing(&text, c, effect, &shown);
	if (length)
		return length < 0 ? NULL : text;
	if (isnan(effect->p))
		length = asprintf(&text, "%s -> %s, %s: too few runs to measure noise", shown.base,
				  shown.new, shown.ratio);
	else if (effect->is_boundary_shift)
		length = asprintf(&text,
				  "%s -> %s, %s: equally often per run; only the end of warm-up "
				  "differs",
				  shown.base, shown.new, shown.ratio);
	else if (effect->is_exact)
		length = describe_exact(&text, effect, &shown, outcome);
	else if (outcome == OUTCOME_UNKNOWN && effect->is_drift && !effect->is_significant)
		length = asprintf(&text,
				  "%s -> %s, %s: within the drift between sets of the baseline; "
				  "smallest detectable change: %s",
				  shown.base, shown.new, shown.ratio, shown.seen);
	else if (outcome == OUTCOME_PASS && !effect->is_significant)
		length = describe_noise(&text, effect, &shown);
	else if (!isfinite(low) && !isfinite(high))
		length = asprintf(&text, "%s -> %s, %s, no confidence interval", shown.base,
				  shown.new, shown.ratio);
	else
		length = asprintf(&text,
				  "%s -> %s, %s (%s%s%sinterval %s to %s); smallest detectable "
				  "change: %s",
				  shown.base, shown.new, shown.ratio, apart ? "net " : "",
				  apart ? net_ratio : "", apart ? ", " : "", shown.low, shown.high,
				  shown.seen);
	return length < 0 ? NULL : text;
}
