/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule being held against a comparison, and the rows that it looks at: what verdict.c and judge.c share.
 */
#ifndef XT_DIFF_RULE_SCOPE_H
#define XT_DIFF_RULE_SCOPE_H

#include "diff/rules/verdict.h"

struct rule_scope {
	struct verdict *verdict;
	const struct comparison *c;
	const struct rules *rules;
	size_t *rows; /* that the rule at hand looks at */
	size_t count;
	bool has_ignored; /* there are more, which are ignored */
};

bool rule_matches_row(const struct rule *rule, const struct comparison_row *row);

/* Fills in rows, count and has_ignored. */
void rule_scope_find_rows(struct rule_scope *j, const struct rule *rule);

/*
 * The side that lacks what the rule needs there, or NULL: a budget does not hold because what it is of has another name
 * now, and every run has its totals. (Idle time of a kind may well be gone.)
 */
const char *rule_scope_missing_side(const struct rule_scope *j, const struct rule *rule);

/*
 * Where NEW has nothing any more of some rows that the rule names, but others of the level took over at least half of that, and the rule would
 * be broken if they were the same: the one that grew most; else NULL. What was lost is *lost_out, in pieces for a rule about
 * counts. Then it may have another name now, and the rule is not kept for that. (If nothing is left, whatever it would be.)
 */
const struct comparison_row *rule_scope_find_renamed(const struct rule_scope *j,
						     const struct rule *rule, double *lost_out);

/*
 * How many call paths take more, for sure, and by so much that the whole can feel it. *unseen_out: of these, those that no
 * rule is about, nor about their kernels; *largest_out: of which most.
 */
size_t rule_scope_count_grown(const struct rule_scope *j, size_t *uncovered_out,
			      const struct comparison_row **largest_out);

/* Is the rule about nothing that either side has? */
bool rule_matches_nothing(const struct rule_scope *j, const struct rule *rule);

/*
 * What a rule says of an effect (of the rows that it looks at, or of one of them). *is_enough_out, if it is not NULL: of
 * many rows, this one is enough for the rule not to be kept.
 */
enum outcome rule_evaluate(const struct rule_scope *j, const struct rule *rule,
			   const struct effect *effect, bool *is_enough_out);

/* A sentence: what was found, or what could have been. To be freed; NULL: no memory. */
char *rule_describe(const struct rule_scope *j, const struct rule *rule,
		    const struct effect *effect, enum unit unit, enum outcome outcome);

/* The least change that the rule would find nearly always, as a ratio. */
double rule_detectable(const struct rule_scope *j, const struct rule *rule,
		       const struct effect *effect);

/* A ratio as the rule has it: as one, or in units. */
double rule_convert_ratio(const struct rule *rule, const struct effect *effect, double ratio);

/* What the rule must be able to see: its limit, but for those that hold by default, which ask less. */
double rule_effective_limit(const struct rule *rule);

/* What is common to everything and no chance, as far as the rule is to see it; else 0. */
double rule_common_change(const struct rule_scope *j, const struct rule *rule,
			  const struct effect *effect);

/* The interval of a change as a rule sees it, as ratios: as unsure as both its parts. */
void rule_change_bounds(const struct rule_scope *j, const struct rule *rule,
			const struct effect *effect, double *low_out, double *high_out);

/*
 * How far the value of NEW may be from its mean: it is as sure as the runs agree, with what all paths have in common. NAN: that
 * is not known.
 */
double rule_budget_margin(const struct rule_scope *j, const struct rule *rule,
			  const struct effect *effect);

#endif
