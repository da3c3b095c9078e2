/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quantity by which xtrace bench --bisect tells slow commits from fast ones: the one that
 * breaks the first failing rule.
 */
#ifndef XT_DIFF_DECIDING_H
#define XT_DIFF_DECIDING_H

#include "diff/rules/verdict.h"

struct deciding {
	const struct rule *rule;
	bool is_each;	   /* one row of the rule, else the sum of its rows */
	char *keys[SIDES]; /* of that row, on each side; owned; NULL: not on this side */
	enum unit unit;
	char *what, *why; /* for people; owned */
};

/*
 * Chooses the worst finding of the first rule that fails because NEW is worse than BASE. Returns 0,
 * -ENOENT if there is none, or -ENOMEM. Call deciding_free() in any case.
 */
int deciding_choose(struct deciding *deciding, const struct verdict *verdict);
void deciding_free(struct deciding *deciding);

/*
 * Writes the value of each run of a comparison: 0 if the run lacks it, NAN if it is unknown. Rows
 * are matched as by xtrace diff. Returns 0 or -ENOMEM.
 */
int deciding_values(const struct deciding *deciding, const struct rules *rules,
		    const struct comparison *c, double *values);

/*
 * The row that explains a change of this quantity best: the row itself, or the call path with the
 * largest increase. *is_sure_out: the increase is significant. NULL if nothing grew.
 */
const struct comparison_row *deciding_explain(const struct deciding *deciding,
					      const struct comparison *c, bool *is_sure_out);

#endif
