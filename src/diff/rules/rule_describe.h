/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describe what a rule found, in words.
 */
#ifndef XT_DIFF_RULE_DESCRIBE_H
#define XT_DIFF_RULE_DESCRIBE_H

#include "diff/rules/rule_eval.h"

/* A sentence with the change, its interval and the smallest detectable change; free it. */
char *rule_describe(const struct comparison *c, const struct rule *rule,
		    const struct effect *effect, enum unit unit, enum outcome outcome);

#endif
