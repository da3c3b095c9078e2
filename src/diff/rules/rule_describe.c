/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describe what a rule found, in words.
 */
#include "diff/rules/rule_describe.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "diff/base/format.h"

/* Formatted numbers. */
struct numbers {
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], ratio[AMOUNT_BYTES];
	char low[AMOUNT_BYTES], high[AMOUNT_BYTES], detectable_text[AMOUNT_BYTES];
};

static char *describe_budget(const struct comparison *c, const struct rule *rule,
			     const struct effect *effect, const struct numbers *numbers)
{
	char within[AMOUNT_BYTES];

	if (!(effect->new > 0.0))
		return xt_asprintf("none in any run of NEW");
	format_percent(within, rule_budget_margin(c, rule, effect) / effect->new);
	return xt_asprintf("%s +/- %s", numbers->new, within);
}

/* Describe a value that one or both sides lack. Returns NULL if neither does. */
static char *describe_missing(const struct comparison *c, const struct effect *effect,
			      const struct numbers *numbers)
{
	if (isnan(effect->base) && !isnan(effect->new))
		return xt_asprintf("%s, new: BASE has no value", numbers->new);
	if (isnan(effect->new) && !isnan(effect->base))
		return xt_asprintf("%s, gone", numbers->base);
	if (effect->base == 0.0 && effect->new == 0.0)
		return xt_asprintf("none on either side%s",
				   c->has_iterations ? " after warm-up" : "");
	if (effect->base == 0.0 && !effect->is_exact && !effect->is_boundary_shift)
		return xt_asprintf("%s -> %s, new, in %u of %zu runs", numbers->base, numbers->new,
				   effect->new_runs, c->side_counts[SIDE_NEW]);
	return NULL;
}

static char *describe_exact(const struct effect *effect, const struct numbers *numbers,
			    enum outcome outcome)
{
	bool both = effect->base > 0.0 && effect->new > 0.0;

	return xt_asprintf("%s -> %s, %s, %s", numbers->base, numbers->new, numbers->ratio,
			   effect->change == 0.0	? "equal in all runs"
			   : outcome == OUTCOME_UNKNOWN ? "in too few runs to be significant"
			   : !both			? "in all runs"
							: "equal in all runs of each side");
}

/* Describe a change that is not significant. */
static char *describe_noise(const struct effect *effect, const struct numbers *numbers)
{
	/* A large common change that may be chance is not part of net_ratio: show both. */
	bool beside = fabs(effect->ratio - effect->net_ratio) > effect->detectable;
	char net_ratio[AMOUNT_BYTES];

	return xt_asprintf("%s -> %s, %s%s%s%s: within noise; smallest detectable change: %s",
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
	char net_ratio[AMOUNT_BYTES], *text;
	struct numbers numbers;

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
		text = describe_budget(c, rule, effect, &numbers);
	else
		text = describe_missing(c, effect, &numbers);
	if (text)
		return text;
	if (isnan(effect->p))
		return xt_asprintf("%s -> %s, %s: too few runs to measure noise", numbers.base,
				   numbers.new, numbers.ratio);
	if (effect->is_boundary_shift)
		return xt_asprintf("%s -> %s, %s: equally often per run; only the end of warm-up "
				   "differs",
				   numbers.base, numbers.new, numbers.ratio);
	if (effect->is_exact)
		return describe_exact(effect, &numbers, outcome);
	if (outcome == OUTCOME_UNKNOWN && effect->is_drift && !effect->is_significant)
		return xt_asprintf("%s -> %s, %s: within the drift between sets of the baseline; "
				   "smallest detectable change: %s",
				   numbers.base, numbers.new, numbers.ratio,
				   numbers.detectable_text);
	if (outcome == OUTCOME_PASS && !effect->is_significant)
		return describe_noise(effect, &numbers);
	if (!isfinite(low) && !isfinite(high))
		return xt_asprintf("%s -> %s, %s, no confidence interval", numbers.base,
				   numbers.new, numbers.ratio);
	return xt_asprintf("%s -> %s, %s (%s%s%sinterval %s to %s); smallest detectable "
			   "change: %s",
			   numbers.base, numbers.new, numbers.ratio, apart ? "net " : "",
			   apart ? net_ratio : "", apart ? ", " : "", numbers.low, numbers.high,
			   numbers.detectable_text);
}
