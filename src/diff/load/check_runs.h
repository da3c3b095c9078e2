/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that runs can be compared: same program, same kind of machine, complete logs, enough runs.
 */
#ifndef XT_DIFF_CHECK_RUNS_H
#define XT_DIFF_CHECK_RUNS_H

#include "diff/load/check_options.h"
#include "diff/load/run_set.h"

/* Are these two profiles of the same run? */
bool check_same_run(const struct run_profile *a, const struct run_profile *b);

/* Adds to problems each difference in program, GPU, driver, CUPTI or iterations. */
void check_alike(const struct run_set *base, const struct run_set *new,
		 const struct check_options *options, struct problems *problems);

/* Adds to problems every reason why the runs cannot be compared. */
void check_runs(const struct run_set *base, const struct run_set *new,
		const struct check_options *options, struct problems *problems);

#endif
