/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules say which change fails a comparison: "path(forward/attention) > 5%". They come from the
 * command line, from files, or are the default rules. docs/DIFF.md defines the language.
 */
#ifndef XT_DIFF_RULE_H
#define XT_DIFF_RULE_H

#include <stdbool.h>
#include <time.h>

#include "diff/base/level.h"
#include "diff/base/text.h"

/*
 * The parts of the pattern, separated by '/', must match frames of the key in this order. With
 * to_end, the last part must match the last frame; use it for rows that include everything below
 * them.
 */
bool rule_matches(const char *pattern, const char *key, bool to_end);

/* Is this a pattern? */
bool row_pattern_is_valid(const char *pattern);

/* Does the pattern name the row with this key? The pattern "" names all rows. */
bool row_pattern_matches(const char *pattern, enum level level, const char *key);

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
