/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batches of a process: equal numbers of iterations, or slices of the run if it has none.
 *
 * docs/internals/DIFF_METHOD.md explains why batches are used.
 */
#ifndef XT_MERGE_PROFILE_WINDOWS_H
#define XT_MERGE_PROFILE_WINDOWS_H

#include "merge/read/iterations.h"

#define PROFILE_BATCHES 32

struct windows {
	enum iterations_source source;
	const char *name;    /* as in the iterations */
	uint64_t *starts_ns; /* found_count start times, ascending; owned */
	uint64_t end_ns;
	size_t found_count;
	size_t warmup_count;		   /* leading iterations to ignore */
	size_t used_count;		   /* iterations after the warm-up, or slices */
	uint32_t batch_count;		   /* batches of used iterations, at most PROFILE_BATCHES */
	uint32_t lengths[PROFILE_BATCHES]; /* number of iterations in each batch */
	size_t recent;			   /* iteration of the last lookup */
};

/* Divides iterations into batches. Free it with windows_free(). */
void windows_make(struct windows *windows, const struct iterations *iterations);

/* The end of an iteration. */
uint64_t windows_end_ns(const struct windows *windows, size_t iteration);

/* The batch at this time, or -1 during warm-up and outside the iterations. */
int windows_batch(struct windows *windows, uint64_t time_ns);

void windows_free(struct windows *windows);

#endif
