/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rules say of a comparison.
 */
#ifndef XT_DIFF_VERDICT_H
#define XT_DIFF_VERDICT_H

#include "diff/compare/comparison.h"
#include "diff/rules/rule_eval.h"
#include "diff/rules/rules.h"

/* A row by which a rule is broken, or cannot be judged. */
struct finding {
	const struct comparison_row *row; /* NULL: a sum of several, see what */
	enum metric metric;
	enum outcome outcome; /* PASS: it would break the rule, but is allowed or ignored */
	struct effect effect;
	char *what;		       /* "gpu-time", "path(…)": for people; owned */
	char *why;		       /* a sentence; owned */
	const struct rule *allowed_by; /* NULL: nothing allows it */
};

struct rule_result {
	const struct rule *rule;
	enum outcome outcome;
	char *text; /* a sentence: what was found, or what could have been seen; owned */
	size_t first_finding, finding_count; /* in the verdict's list, worst first */
	double detectable;		     /* the least that would be found; NAN: not known */
};

struct verdict {
	enum outcome outcome; /* the exit status: 0, 1, 2 */
	struct rule_result *results;
	size_t result_count;
	struct finding *findings;
	size_t finding_count, finding_capacity;
	size_t grown_count;	  /* call paths that take more, for sure … */
	size_t uncovered_count;	  /* … and at which no rule looks */
	struct problems problems; /* why it could not be judged at all */
	struct problems
		notes; /* those of the comparison, and what is to be kept in mind of rules */
};

/*
 * Judges. problems are those of loading, which are taken over (it is then empty). 0 or -ENOMEM;
 * verdict_free() in any case. comparison may be NULL if there are problems.
 */
int verdict_make(struct verdict *verdict, const struct comparison *comparison,
		 const struct rules *rules, struct problems *problems);
void verdict_free(struct verdict *verdict);

#endif
