/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of rules: from the command line, from files, or the default rules.
 */
#ifndef XT_DIFF_RULES_H
#define XT_DIFF_RULES_H

#include "diff/rules/rule.h"

/* All zeros is an empty list. */
struct rules {
	struct rule *list;
	size_t count;
	size_t capacity;
};

/*
 * Parses one line and appends its rule. Skips an empty line or a comment. Adds errors to problems.
 * Returns 0 or -EINVAL.
 */
int rules_add(struct rules *rules, const char *text, const char *origin, struct problems *problems);

/* Appends the rules of a file. Returns as rules_add(). */
int rules_read(struct rules *rules, const char *path, struct problems *problems);

/*
 * Appends the rules that apply if the user gives none. rules_default_lines, which ends with NULL,
 * has their texts.
 */
void rules_add_default(struct rules *rules);
extern const char *const rules_default_lines[];

/* Removes all rules but exceptions: allow and ignore. Returns how many it removed. */
size_t rules_keep_exceptions(struct rules *rules);

/* Appends the rules of --only-counts. */
void rules_add_counting(struct rules *rules);

#define COUNTING_RUNS_MIN 5 /* of each side, to learn which counts never vary */

void rules_free(struct rules *rules);

#endif
