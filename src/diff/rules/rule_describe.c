/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describe what a rule found, in words.
 */
#include "diff/rules/rule_describe.h"

#include <math.h>
#include <stdio.h>

#include "diff/base/format.h"

/* Formatted numbers. */
struct numbers {
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], ratio[AMOUNT_BYTES];
	char low[AMOUNT_BYTES], high[AMOUNT_BYTES], detectable_text[AMOUNT_BYTES];
};

static int describe_budget(char **text, const struct comparison *c, const struct rule *rule,
			   const struct effect *effect, const struct numbers *numbers)
{
	char within[AMOUNT_BYTES];

	if (!(effect->new > 0.0))
		return asprintf(text, "none in any run of NEW");
	format_percent(within, rule_budget_margin(c, rule, effect) / effect->new);
	return asprintf(text, "%s +/- %s", numbers->new, within);
}

/* Describe a value that one or both sides lack. Returns 0 if neither does. */
static int describe_missing(char **text, const struct comparison *c, const struct effect *effect,
			    const struct numbers *numbers)
{
	if (isnan(effect->base) && !isnan(effect->new))
		return asprintf(text, "%s, new: BASE has no value", numbers->new);
	if (isnan(effect->new) && !isnan(effect->base))
		return asprintf(text, "%s, gone", numbers->base);
	if (effect->base == 0.0 && effect->new == 0.0)
		return asprintf(text, "none on either side%s",
				c->has_iterations ? " after warm-up" : "");
	if (effect->base == 0.0 && !effect->is_exact && !effect->is_boundary_shift)
		return asprintf(text, "%s -> %s, new, in %u of %zu runs", numbers->base,
				numbers->new, effect->new_runs, c->side_counts[SIDE_NEW]);
	return 0;
}

static int describe_exact(char **text, const struct effect *effect, const struct numbers *numbers,
			  enum outcome outcome)
{
	bool both = effect->base > 0.0 && effect->new > 0.0;

	return asprintf(text, "%s -> %s, %s, %s", numbers->base, numbers->new, numbers->ratio,
			effect->change == 0.0	     ? "equal in all runs"
			: outcome == OUTCOME_UNKNOWN ? "in too few runs to be significant"
			: !both			     ? "in all runs"
						     : "equal in all runs of each side");
}

/* Describe a change that is not significant. */
static int describe_noise(char **text, const struct effect *effect, const struct numbers *numbers)
{
	/* A large common change that may be chance is not part of net_ratio: show both. */
	bool beside = fabs(effect->ratio - effect->net_ratio) > effect->detectable;
	char net_ratio[AMOUNT_BYTES];

	return asprintf(text, "%s -> %s, %s%s%s%s: within noise; smallest detectable change: %s",
			numbers->base, numbers->new, numbers->ratio, beside ? " (" : "",
			beside ? format_ratio(net_ratio, effect->net_ratio) : "",
			beside ? " net of the common change)" : "", numbers->detectable_text);
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
	struct numbers numbers;
	int length;

	rule_change_bounds(c, rule, effect, &low, &high);
	apart = effect->ratio < low || effect->ratio > high;
	format_amount(numbers.base, unit, effect->base);
	format_amount(numbers.new, unit, effect->new);
	format_ratio(numbers.ratio, effect->ratio);
	format_ratio(numbers.low, low);
	format_ratio(numbers.high, high);
	format_percent(numbers.detectable_text, rule_detectable(c, rule, effect));
	format_ratio(net_ratio, effect->net_ratio + rule_common_change(c, rule, effect));
	if (rule->kind == RULE_BUDGET)
		length = describe_budget(&text, c, rule, effect, &numbers);
	else
		length = describe_missing(&text, c, effect, &numbers);
	if (length)
		return length < 0 ? NULL : text;
	if (isnan(effect->p))
		length = asprintf(&text, "%s -> %s, %s: too few runs to measure noise",
				  numbers.base, numbers.new, numbers.ratio);
	else if (effect->is_boundary_shift)
		length = asprintf(&text,
				  "%s -> %s, %s: equally often per run; only the end of warm-up "
				  "differs",
				  numbers.base, numbers.new, numbers.ratio);
	else if (effect->is_exact)
		length = describe_exact(&text, effect, &numbers, outcome);
	else if (outcome == OUTCOME_UNKNOWN && effect->is_drift && !effect->is_significant)
		length =
			asprintf(&text,
				 "%s -> %s, %s: within the drift between sets of the baseline; "
				 "smallest detectable change: %s",
				 numbers.base, numbers.new, numbers.ratio, numbers.detectable_text);
	else if (outcome == OUTCOME_PASS && !effect->is_significant)
		length = describe_noise(&text, effect, &numbers);
	else if (!isfinite(low) && !isfinite(high))
		length = asprintf(&text, "%s -> %s, %s, no confidence interval", numbers.base,
				  numbers.new, numbers.ratio);
	else
		length = asprintf(&text,
				  "%s -> %s, %s (%s%s%sinterval %s to %s); smallest detectable "
				  "change: %s",
				  numbers.base, numbers.new, numbers.ratio, apart ? "net " : "",
				  apart ? net_ratio : "", apart ? ", " : "", numbers.low,
				  numbers.high, numbers.detectable_text);
	return length < 0 ? NULL : text;
}
