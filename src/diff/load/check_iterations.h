/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that an iteration is the same unit of work on both sides, and the one the user asked for.
 */
#ifndef XT_DIFF_CHECK_ITERATIONS_H
#define XT_DIFF_CHECK_ITERATIONS_H

#include "diff/load/check_options.h"
#include "diff/load/run_set.h"

/* Does every run of one side have over 5 % more iterations than any run of the other side? */
bool check_counts_differ(const struct run_set *base, const struct run_set *new);

/* Adds to problems if iterations are not the requested ones, or may differ between the sides. */
void check_iterations(const struct run_set *base, const struct run_set *new,
		      const struct check_options *options, struct problems *problems);

#endif
