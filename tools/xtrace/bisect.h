/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace bench --bisect. bisect.c decides, bisect_runs.c records and measures, bisect_git.c chooses
 * commits, and bisect_report.c prints. docs/internals/DIFF_METHOD.md describes the method.
 */
#ifndef XTRACE_BISECT_H
#define XTRACE_BISECT_H

#include <stdio.h>

#include "bench.h"
#include "bisect_git.h"
#include "diff/diff_options.h"
#include "diff/rules/deciding.h"
#include "diff/stats/sequential.h"

#define BISECT_RUNS_MIN 3 /* of each side, at the first look of a step */

/* A commit that was tested. */
struct bisect_step {
	struct git_commit commit;
	const char *verdict; /* "good", "bad", "skip"; NULL: undecided */
	const char *why;     /* why it was skipped; NULL: it was not */
	unsigned runs;	     /* of each side */
	struct run_pair pair;
};

enum bisect_outcome {
	BISECT_FAILED, /* an error, or interrupted */
	BISECT_FOUND,
	BISECT_NOT_WORSE, /* BAD is not worse than GOOD */
	BISECT_UNDECIDED, /* noise hides a step, or the last one */
	BISECT_SKIPPED,	  /* only skipped commits are left */
};

struct bisect {
	struct bench *bench;
	char **command;
	struct bisect_git git;
	char *output; /* absolute path of the bench directory; owned */
	FILE *out;    /* where people read */

	struct problems problems;
	struct diff_options diff; /* rules, and how to load and compare runs */
	struct deciding deciding;
	bool is_log; /* values are compared by their logarithms */
	struct references references;
	const char *basis; /* what its values are of: comparison_basis() */

	struct bisect_step *steps; /* owned */
	size_t step_count;
	char (*candidates)[GIT_HASH_BYTES]; /* owned; the first is known to be bad */
	size_t candidate_count, range_count;
	const struct git_commit *base; /* in TREE_GOOD */
	double spent;		       /* error of the steps so far */
	unsigned run_count;	       /* of all sides, without warm-up */

	enum bisect_outcome outcome;
	char *failure; /* what failed at a commit that cannot be skipped; owned; NULL: nothing */
	struct git_commit parent;
	struct bisect_step last;       /* the first bad commit, compared with its parent */
	char *path_name, *path_change; /* the call path that got slower; owned; NULL: none */
	bool is_path_sure;
};

/* Runs of GOOD and of a candidate, recorded alternately. */
struct recording {
	struct run_set sets[SIDES];
	unsigned runs; /* of each side */
};

/* Returns the exit status. command ends with NULL. */
int bisect_run(struct bench *bench, char **command);

/*
 * Ends the bisection, because a command failed at a commit that cannot be skipped. Returns -EIO or
 * -ENOMEM.
 */
int bisect_fail(struct bisect *b, const char *what, const struct git_commit *commit);

/*
 * Runs the build command in a worktree. Returns 0, -ECHILD if it failed, or another -errno after
 * an error message.
 */
int bisect_build(const struct bisect *b, enum git_tree tree);

/*
 * Begin a recording below the bench directory, with warm-up runs; add runs until each side has that
 * many; end it. The first two return 0, -ECHILD if the candidate's program failed, or another error
 * after an error message or bisect_fail(). Call recording_close() in any case.
 */
int recording_open(struct bisect *b, struct recording *recording, const char *name);
int recording_extend(struct bisect *b, struct recording *recording, unsigned runs);
void recording_close(struct bisect *b, struct recording *recording);

/*
 * Measures the deciding quantity. Sets step->pair, or step->why if the commit cannot be compared.
 * Returns 0 or -errno.
 */
int recording_measure(struct bisect *b, struct recording *recording, struct bisect_step *step);

/* Adds the values of a comparison to both groups. Returns 0, -EDOM if one is unknown, or -ENOMEM.
 */
int bisect_take_values(const struct bisect *b, const struct comparison *c, struct run_pair *pair);

void bisect_report_begin(const struct bisect *b);
void bisect_report_ends(const struct bisect *b);
void bisect_report_not_worse(const struct bisect *b, const struct verdict *verdict);
void bisect_report_step_begin(const struct bisect *b, const struct bisect_step *step);
void bisect_report_step(const struct bisect *b, const struct bisect_step *step);
void bisect_report_end(const struct bisect *b);

/* Writes the document of --json. Returns 0, or -errno after an error message. */
int bisect_write_json(const struct bisect *b);

#endif
