/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of xtrace ci init: measure the command, then write rules and a workflow.
 *
 * Nothing in the repository changes before the runs are judged and all texts exist.
 */
#ifndef XTRACE_CI_H
#define XTRACE_CI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define CI_FOLDER   ".xtrace"
#define CI_BASELINE CI_FOLDER "/baseline.json"
#define CI_RULES    CI_FOLDER "/rules"
#define CI_SCRIPTS  CI_FOLDER "/ci"

struct ci_setup;

/* A CI system. */
struct ci_host {
	const char *name;     /* on the command line */
	const char *workflow; /* a path in the repository */
	const char *folder;   /* what to give to git add for it */
	void (*write)(FILE *out, const struct ci_setup *setup);
};

/* The host with that name, or NULL. */
const struct ci_host *ci_host_find(const char *name);

/* The command line, and what follows from it. */
struct ci_setup {
	bool is_simulated, force;
	unsigned runs;	    /* in each of the two sets */
	const char *xtrace; /* tarball, URL or folder for the job; NULL: the job installs xtrace */
	const struct ci_host *host;
	char **command; /* ends with NULL */
	char *line;	/* the command for a shell; owned */
	char *scripts;	/* the installed folder with gate.sh; owned */
};

/* The differences between runs of the same program, in the rows of one rule. */
struct ci_measured {
	size_t row_count; /* rows that exist and are large enough to be judged */
	double low, high; /* their smallest detectable changes, as ratios; INFINITY: unknown */
	double needed;	  /* a limit that is large enough for most of their GPU time */
	bool is_constant; /* the number that the rule is about is equal in all runs */
};

/* How a rule gets its limit. */
enum ci_limit {
	CI_PERCENT,   /* from the smallest detectable change */
	CI_NO_MORE,   /* 0, if the number is constant */
	CI_COMMENTED, /* as CI_PERCENT, but the rule is a comment: it is too noisy to be a default */
};

/* A rule that xtrace ci init can write. */
struct ci_rule {
	const char *subject; /* in the language of rules */
	const char *level;   /* of its rows in xtrace diff --json */
	const char *key;     /* of its row; NULL: all rows of the level */
	const char *metric;  /* "value" or "count" */
	enum ci_limit limit;
	double least, most;  /* bounds of the limit, as ratios */
	const char *meaning; /* sentences for its comment */
	const char *remedy;
};

#define CI_RULE_COUNT 10
extern const struct ci_rule ci_rules[CI_RULE_COUNT];

/* The results of two sets of runs of the same program. */
struct ci_learned {
	struct ci_measured rules[CI_RULE_COUNT]; /* by place in ci_rules */
	double gpu_spread, wall_spread;		 /* (longest - shortest) / median; NAN: unknown */
};

/*
 * Records two sets of runs into the folder and learns from their comparison. Returns 0, or another
 * value after an error message.
 */
int ci_measure(const struct ci_setup *setup, const char *folder, struct ci_learned *learned);

/*
 * Compares the two sets with a file of rules. Returns 0 if all pass, or -EAGAIN if *learned was
 * changed so that less strict rules can be written. Other values follow an error message.
 */
int ci_verify(const char *folder, const char *rules, struct ci_learned *learned);

/* Saves both sets as one baseline. Returns 0, or another value after an error message. */
int ci_save_baseline(const char *folder, const char *path);

/* The limit of a rule, as a ratio. INFINITY: the runs are too noisy for the rule. */
double ci_limit(const struct ci_rule *rule, const struct ci_measured *measured);

/* Writes the text of .xtrace/rules. */
void ci_rules_write(FILE *out, const struct ci_setup *setup, const struct ci_learned *learned);

#endif
