/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of what may not happen, in words: "path(forward/attention) > 5%". docs/DIFF.md has the language.
 */
#ifndef XT_DIFF_RULES_H
#define XT_DIFF_RULES_H

#include <time.h>

#include "diff/base/level.h"
#include "diff/base/problems.h"

enum rule_kind {
	RULE_LIMIT,  /* fails if the change is more than that */
	RULE_BUDGET, /* fails if the new value is not below that */
	RULE_IGNORE, /* rows that no rule looks at */
	RULE_ALLOW,  /* … that may change by so much, until a day */
};

struct rule {
	enum rule_kind kind;
	char *text;   /* as it was written, without a comment; owned, as all texts here */
	char *origin; /* "--fail-on", or "file:12" */
	enum level level;
	enum metric metric;
	char *pattern;	  /* of keys; NULL: the row of LEVEL_TOTAL called name */
	const char *name; /* a row of LEVEL_TOTAL, or "" */
	bool is_each;	  /* every row that fits by itself, not their sum: "each", or pattern '*' */
	bool is_relative; /* limit is a ratio: 0.05 */
	double limit;	  /* ratio, ns, bytes or number */
	bool is_soft;	  /* noise does not keep it from passing: it says what it could see */
	time_t until;	  /* RULE_ALLOW: 0 for ever, else its last second */
	char *reason;	  /* behind '#', or NULL */
};

/* All zeros is an empty list. */
struct rules {
	struct rule *list;
	size_t count;
	size_t capacity;
};

/*
 * Reads one rule of text (a line: what is empty or a comment is none). What is wrong is added to problems
 * with the position, the line and a caret below it. 0, -EINVAL or -ENOMEM.
 */
int rules_add(struct rules *rules, const char *text, const char *origin, struct problems *problems);

/* The same of each line of a file. */
int rules_read(struct rules *rules, const char *path, struct problems *problems);

/* Those that hold where nobody gives others: rules_default_lines is their text, ended by NULL. */
int rules_add_default(struct rules *rules);
extern const char *const rules_default_lines[];
void rules_free(struct rules *rules);

/*
 * Does the pattern fit the key of a row? Its parts, between slashes, fit frames in this order. to_end: the last part
 * fits the last frame, for rows that hold all that is below them.
 */
bool rule_matches(const char *pattern, const char *key, bool to_end);

#endif
