/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rule says which change fails a comparison: "path(forward/attention) > 5%". docs/DIFF.md
 * defines the language.
 */
#ifndef XT_DIFF_RULE_H
#define XT_DIFF_RULE_H

#include <time.h>

#include "diff/base/level.h"
#include "diff/base/problems.h"

enum rule_kind {
	RULE_LIMIT,  /* fails if the change exceeds the limit */
	RULE_BUDGET, /* fails unless the new value is below the limit */
	RULE_IGNORE, /* excludes rows from all rules */
	RULE_ALLOW,  /* allows rows to change by the limit, optionally until a date */
};

/* Owns its text, origin, pattern and reason. */
struct rule {
	enum rule_kind kind;
	char *text;   /* as written, without the comment */
	char *origin; /* "--fail-on" or "file:12" */
	enum level level;
	enum metric metric;

	char *pattern;	  /* matches keys; NULL: the row of LEVEL_TOTAL called name */
	const char *name; /* a row of LEVEL_TOTAL, or "" */
	bool is_each;	  /* test each matching row, not their sum: "each", or pattern '*' */
	bool is_relative; /* limit is a ratio: 0.05 */

	double limit;	  /* ratio, ns, bytes or count */
	bool is_counting; /* of --only-counts: judges what is equal in all runs of BASE */
	bool is_soft;	  /* default rule: inconclusive only if it cannot detect a 10 % change */
	time_t until;	  /* RULE_ALLOW: the last second; 0: no end */
	char *reason;	  /* the comment after '#', or NULL */
};

/*
 * Parses a line that is neither empty nor a comment. Adds a syntax error to problems with the line
 * and a caret. Returns 0 or -EINVAL; the caller frees the rule only after 0.
 */
int rule_parse(struct rule *rule, const char *text, const char *origin, struct problems *problems);
void rule_free(struct rule *rule);

#endif
