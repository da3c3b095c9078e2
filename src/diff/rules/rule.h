/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules say which change fails a comparison: "path(forward/attention) > 5%". They come from the
 * command line, from files, or are the default rules. docs/DIFF.md defines the language.
 *
 * A rule on an effect fails, passes, or noise leaves it unknown. Texts describe what it found.
 */
#ifndef XT_DIFF_RULE_H
#define XT_DIFF_RULE_H

#include <stdbool.h>
#include <time.h>

#include "diff/base/text.h"
#include "diff/compare/comparison.h"

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
	LIST(struct rule);
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

/*
 * A sentence with the change, its interval and the smallest detectable change. See text_print().
 */
const char *rule_describe(const struct comparison *c, const struct rule *rule,
			  const struct effect *effect, enum unit unit, enum outcome outcome);

#endif
