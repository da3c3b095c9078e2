/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that an iteration is the same unit of work on both sides, and the one the user asked for.
 */
#ifndef XT_DIFF_CHECK_ITERATIONS_H
#define XT_DIFF_CHECK_ITERATIONS_H

#include "diff/load/check_options.h"
#include "diff/load/run_set.h"

/* Numbers of iterations of the runs of a side, without history. */
struct iteration_counts {
	uint64_t median, least, most;
};
struct iteration_counts check_count_iterations(const struct run_set *set);

/* Do these numbers of iterations differ by more than 5 %? 0 is an unknown number. */
bool check_counts_differ(uint64_t a, uint64_t b);

/* Adds to problems if iterations are not the requested ones, or may differ between the sides. */
void check_iterations(const struct run_set *base, const struct run_set *new,
		      const struct check_options *options, struct problems *problems);

#endif
