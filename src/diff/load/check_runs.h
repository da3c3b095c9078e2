/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that runs can be compared: same program, same kind of machine, complete logs, enough
 * runs.
 */
#ifndef XT_DIFF_CHECK_RUNS_H
#define XT_DIFF_CHECK_RUNS_H

#include <stdbool.h>

#include "diff/load/run_profile.h"

struct check_options {
	bool allow_different; /* programs, devices, drivers, hosts */
	bool is_per_iteration;
	bool allow_different_iterations;
	bool allow_degraded;   /* incomplete logs, but not damaged ones */
	const char *iteration; /* value of --iteration, or NULL */
	const char *warmup;    /* value of --warmup, or NULL */
	const char
		*advice; /* "; see …", appended when runs differ; NULL: the advice of xtrace diff */
};

/* Numbers of iterations of the runs of a side, without history. */
struct iteration_counts {
	uint64_t median, least, most;
};
struct iteration_counts check_count_iterations(const struct run_set *set);

/* Do these numbers of iterations differ by more than 5 %? 0 is an unknown number. */
bool check_counts_differ(uint64_t a, uint64_t b);

/* Are these two profiles of the same run? */
bool check_same_run(const struct run_profile *a, const struct run_profile *b);

/* Adds to problems each difference in program, GPU, driver, CUPTI or iterations. */
void check_alike(const struct run_set *base, const struct run_set *new,
		 const struct check_options *options, struct problems *problems);

/* Adds to problems every reason why the runs cannot be compared. */
void check_runs(const struct run_set *base, const struct run_set *new,
		const struct check_options *options, struct problems *problems);

#endif
