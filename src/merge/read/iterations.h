/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iterations of a process and their batches. They are known before its events are read, so that
 * events can be summed by batch in one pass.
 *
 * Iterations are, in this order of preference:
 * - the instances of an NVTX range
 * - the intervals between launches from one place, if the launches in them are always the same
 * - none: the batches are slices of the run
 *
 * docs/internals/DIFF_METHOD.md explains why batches are used.
 */
#ifndef XT_MERGE_PROFILE_WINDOWS_H
#define XT_MERGE_PROFILE_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/period.h"
#include "merge/read/model.h"
#include "merge/sums/settings.h"

#define PROFILE_BATCHES	       32
#define PROFILE_ITERATIONS_MIN XT_PERIOD_ITERATIONS_MIN /* fewer are none */

enum windows_source {
	WINDOWS_SLICES,
	WINDOWS_RANGE,
	WINDOWS_PERIOD,
	WINDOWS_MISSING /* the requested range does not occur */
};

struct windows {
	enum windows_source source;
	char *name;	     /* name of the range, or NULL; owned */
	uint64_t *starts_ns; /* found_count start times, ascending */
	uint64_t end_ns;     /* end of the last iteration */
	size_t found_count;
	size_t capacity;
	size_t warmup_count;		   /* leading iterations to ignore */
	size_t used_count;		   /* iterations after the warm-up */
	uint32_t batch_count;		   /* batches of used iterations, at most PROFILE_BATCHES */
	uint32_t lengths[PROFILE_BATCHES]; /* number of iterations in each batch */
	size_t recent;			   /* iteration of the last lookup */
};

/*
 * Finds the iterations in the log of this model and divides them into batches. Returns false if the
 * requested range has fewer than PROFILE_ITERATIONS_MIN instances. Call windows_free() in any case.
 */
bool windows_find(struct windows *windows, const struct model *model, const char *log_path,
		  const struct windows_request *request);

/* The end of an iteration. */
uint64_t windows_end_ns(const struct windows *windows, size_t iteration);

/* The batch at this time, or -1 during warm-up and outside the iterations. */
int windows_batch(struct windows *windows, uint64_t time_ns);

void windows_free(struct windows *windows);

/* Formats the name of an NVTX range with masked numbers. The caller frees it. */
char *windows_range_name(const struct model *model, const struct range_node *node);

#endif
