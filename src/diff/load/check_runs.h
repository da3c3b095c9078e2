/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether runs can be compared at all: the same program on the same kind of machine, nothing missing, and
 * enough of them.
 */
#ifndef XT_DIFF_CHECK_RUNS_H
#define XT_DIFF_CHECK_RUNS_H

#include "diff/load/load_runs.h"

struct check_options {
	bool allow_different;  /* programs, devices, drivers, hosts */
	bool allow_degraded;   /* logs that lack something; none that is damaged */
	const char *iteration; /* what was asked for by --iteration … */
	const char *warmup;    /* … and --warmup; NULL: nothing */
	const char *
		advice; /* what is said of runs that differ, "; see …"; NULL: as xtrace diff does */
};

/* Are they profiles of one and the same run? */
bool check_same_run(const struct run_profile *a, const struct run_profile *b);

/* Adds to problems what makes them runs of something else: program, GPU, driver, CUPTI, iterations. */
void check_alike(const struct run_set *base, const struct run_set *new,
		 const struct check_options *options, struct problems *problems);

/* Does a run of one side have more iterations than any of the other, by more than a few? */
bool check_counts_differ(const struct run_set *base, const struct run_set *new);

/* Adds to problems that iterations are not those that were asked for, or may be something else on either side. */
void check_iterations(const struct run_set *base, const struct run_set *new,
		      const struct check_options *options, struct problems *problems);

/* Adds to problems what speaks against comparing them. */
void check_runs(const struct run_set *base, const struct run_set *new,
		const struct check_options *options, struct problems *problems);

#endif
