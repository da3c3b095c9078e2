/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule being held against a comparison, and the rows that it looks at: what verdict.c and judge.c share.
 */
#ifndef XT_DIFF_JUDGE_H
#define XT_DIFF_JUDGE_H

#include "diff/verdict.h"

struct judge {
	struct verdict *verdict;
	const struct comparison *c;
	const struct rules *rules;
	size_t *rows; /* that the rule at hand looks at */
	size_t count;
	bool has_ignored; /* there are more, which are ignored */
};

bool judge_row_fits(const struct rule *rule, const struct comparison_row *row);

/* Fills in rows, count and has_ignored. */
void judge_find_rows(struct judge *j, const struct rule *rule);

/*
 * The side that lacks what the rule needs there, or NULL: a budget does not hold because what it is of has another name
 * now, and every run has its totals. (Idle time of a kind may well be gone.)
 */
const char *judge_find_missing(const struct judge *j, const struct rule *rule);

#endif
