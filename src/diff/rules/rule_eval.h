/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates a rule on an effect: it fails, passes, or noise leaves it unknown. Describes what the
 * rule found, in words.
 */
#ifndef XT_DIFF_RULE_EVAL_H
#define XT_DIFF_RULE_EVAL_H

#include "diff/compare/comparison.h"
#include "diff/rules/rule.h"

/* Values are exit statuses. */
enum outcome { OUTCOME_PASS, OUTCOME_FAIL, OUTCOME_UNKNOWN };

extern const char *const outcome_words[]; /* "pass", "regression", "unknown" */

/* Whether the value differs between the runs of BASE, so that --only-counts cannot judge it. */
bool rule_varies_in_base(const struct effect *effect);

/*
 * Evaluates the rule on the effect of one row, or of the sum of its rows. Sets *is_decisive_out,
 * which may be NULL, if in a rule about many rows this row alone prevents a pass.
 */
enum outcome rule_evaluate(const struct comparison *c, const struct rule *rule,
			   const struct effect *effect, bool *is_decisive_out);

/* The smallest change, as a ratio, that the rule would detect with 95 % probability. */
double rule_detectable(const struct comparison *c, const struct rule *rule,
		       const struct effect *effect);

/* Converts a ratio to the terms of the rule: a ratio, or an amount. */
double rule_convert_ratio(const struct rule *rule, const struct effect *effect, double ratio);

/* The change that the rule must be able to detect: its limit, or more for a default rule. */
double rule_effective_limit(const struct rule *rule);

/* A sentence with the change, its interval and the smallest detectable change; free it. */
char *rule_describe(const struct comparison *c, const struct rule *rule,
		    const struct effect *effect, enum unit unit, enum outcome outcome);

#endif
