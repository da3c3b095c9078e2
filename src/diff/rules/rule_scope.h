/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows of a comparison a rule applies to.
 */
#ifndef XT_DIFF_RULE_SCOPE_H
#define XT_DIFF_RULE_SCOPE_H

#include "diff/compare/comparison.h"
#include "diff/rules/rules.h"

struct rule_scope {
	const struct comparison *c;
	const struct rules *rules;
	size_t *rows; /* indices of the rows of the current rule; room for all rows */
	size_t count;
	bool has_ignored; /* the rule matches other rows, which are ignored */
};

bool rule_matches_row(const struct rule *rule, const struct comparison_row *row);

/* Does the rule match no row on either side? */
bool rule_matches_nothing(const struct rule_scope *scope, const struct rule *rule);

/* Finds the rows of a rule: set rows, count and has_ignored. */
void rule_scope_find_rows(struct rule_scope *scope, const struct rule *rule);

/*
 * The side, "BASE" or "NEW", that lacks rows which the rule needs, or NULL. Every run has totals. A
 * budget needs a row in NEW, because a missing row may have been renamed. Idle time of one cause
 * may vanish.
 */
const char *rule_scope_missing_side(const struct rule_scope *scope, const struct rule *rule);

/*
 * Finds rows that were probably renamed. Suppose rows of the rule vanished in NEW, and other rows
 * of the level grew by at least half of that. Then the rule might pass only because of new names.
 * Returns the row that grew most, or NULL. If some rows of the rule remain, only growth that would
 * break the rule counts. Sets *lost_out to the vanished amount, or to the vanished count for rules
 * about counts.
 */
const struct comparison_row *rule_scope_find_renamed(const struct rule_scope *scope,
						     const struct rule *rule, double *lost_out);

/*
 * Count the call paths that grew significantly, by a relevant share of the GPU time. Sets
 * *uncovered_out to the number of them that no rule covers, directly or by kernel. Sets
 * *largest_out to the one of these that grew most, or to NULL.
 */
size_t rule_scope_count_grown(const struct rule_scope *scope, size_t *uncovered_out,
			      const struct comparison_row **largest_out);

#endif
