/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict: the outcome of every rule.
 */
#ifndef XT_DIFF_VERDICT_H
#define XT_DIFF_VERDICT_H

#include "diff/compare/comparison.h"
#include "diff/rules/rule.h"

/* A row that breaks a rule or is inconclusive. */
struct rule_finding {
	const struct comparison_row *row; /* NULL: a sum of several rows, see what */
	enum metric metric;
	enum outcome outcome; /* OUTCOME_PASS: it breaks the rule, but is allowed */
	struct effect effect;
	const char *what;	       /* for people: "gpu-time", "path(…)" */
	const char *why;	       /* a sentence */
	const struct rule *allowed_by; /* or NULL */
};

struct rule_result {
	const struct rule *rule;
	enum outcome outcome;
	const char *text;		     /* a sentence */
	size_t first_finding, finding_count; /* in the verdict's list, worst first */
	double detectable;		     /* smallest detectable change; NAN: unknown */
};

struct verdict {
	enum outcome outcome; /* also the exit status */
	struct rule_result *results;
	size_t result_count;
	struct rule_finding *findings;
	size_t finding_count, finding_capacity;
	size_t grown_count;	  /* call paths that grew significantly */
	size_t uncovered_count;	  /* those of them that no rule covers */
	struct problems problems; /* why the comparison is inconclusive */
	struct problems notes;	  /* of the comparison and of the rules */
	struct arena *memory;	  /* of the texts of results and findings */
};

/*
 * Evaluates the rules. Takes over the problems of loading; *problems is then empty. comparison may
 * be NULL if there are problems. Free it with verdict_free().
 */
void verdict_make(struct verdict *verdict, const struct comparison *comparison,
		  const struct rules *rules, struct problems *problems);
void verdict_free(struct verdict *verdict);

bool rule_matches_row(const struct rule *rule, const struct comparison_row *row);

#endif
