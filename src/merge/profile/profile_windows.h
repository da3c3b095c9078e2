/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iterations of a process, and the batches that these are put into: known before its events are
 * read, so that sums can be made by batch as the events come.
 *
 * An iteration is a stretch of time. Iterations are the instances of an NVTX range; else what lies
 * between launches from one place, if the launches between them are alike each time; else there
 * are none, and the batches are slices of the run. (docs/internals/DIFF_METHOD.md says why batches.)
 */
#ifndef XT_MERGE_PROFILE_WINDOWS_H
#define XT_MERGE_PROFILE_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_BATCHES	       32
#define PROFILE_ITERATIONS_MIN 8 /* what repeats less often is no iteration */

enum windows_source {
	WINDOWS_SLICES,
	WINDOWS_RANGE,
	WINDOWS_PERIOD,
	WINDOWS_MISSING /* the range that was asked for is not there */
};

/* What the user wants of it. */
struct windows_request {
	const char *iteration; /* name of an NVTX range; NULL: the best one, or the period */
	uint32_t warmup_count;
	bool has_warmup; /* else it is found out */
};

struct windows {
	enum windows_source source;
	char *name;	     /* of the range, or NULL; owned */
	uint64_t *starts_ns; /* found_count of them, in order … */
	uint64_t end_ns;     /* … and the end of the last */
	size_t found_count;
	size_t capacity;
	size_t warmup_count;		   /* the first of them, which are left out */
	size_t used_count;		   /* those after them */
	uint32_t batch_count;		   /* of the used ones; at most PROFILE_BATCHES */
	uint32_t lengths[PROFILE_BATCHES]; /* iterations in each */
	size_t recent;			   /* the one asked for last */
};

/* Append an iteration. Returns 0 or -ENOMEM. */
int windows_add(struct windows *windows, uint64_t start_ns);

/*
 * Choose the warm-up iterations and divide the others into batches. All iterations must have been
 * added. Returns 0 or -ENOMEM.
 */
int windows_make_batches(struct windows *windows, const struct windows_request *request);

/* The batch that a moment lies in, or -1: before the first or behind the last. */
int windows_batch(struct windows *windows, uint64_t time_ns);

void windows_free(struct windows *windows);

#endif
