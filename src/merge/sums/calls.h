/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API calls by function: count, duration and failures by error and call path.
 *
 * Memory is bounded: functions and failures beyond the limits are summed as "others".
 */
#ifndef XT_MERGE_CALLS_H
#define XT_MERGE_CALLS_H

#include <stdint.h>

#include "log/base/hash_table.h"
#include "merge/naming/frames.h"
#include "merge/read/correlate.h"
#include "merge/sums/histogram.h"

#define CALLS_FUNCTIONS_MAX 512
#define CALLS_FAILURES_MAX  4096

struct call_row {
	uint32_t name;	/* name in paths; NAME_EMPTY: sum of all functions beyond the limit */
	uint32_t stack; /* of the first call: the name follows from it and the API */
	uint16_t api;
	uint64_t failed_count;
	struct durations durations;
};

struct failure {
	uint32_t process; /* name in paths; NAME_EMPTY: paths have no process frame */
	uint32_t name;
	uint32_t node; /* calling frame in paths; PATH_ROOT if unknown */
	uint64_t result;
	uint64_t count;
	uint16_t api;
};

/* Zeros are an empty one. */
struct calls {
	LIST(struct call_row);
	BY_ID(uint32_t) places; /* row + 1 by name; 0: none */
	struct interner failure_keys;
	LIST(struct failure) failures; /* by id of the key - 1, until calls_sort() */
	uint64_t other_failure_count;  /* failures beyond the limit */
};

/* Adds a call. process is the frame at the root of its path, or NAME_EMPTY. */
void calls_add(struct calls *calls, uint32_t process, const struct frames *frames,
	       const struct launch *call, uint64_t duration_ns, uint64_t result);

/*
 * The same for a log that is read apart from the run: calls_pack() finds names and paths later, so
 * failures differ by XT_STACK_ID.
 */
void calls_add_apart(struct calls *calls, const struct frames *frames, const struct launch *call,
		     uint64_t duration_ns, uint64_t result);

/*
 * Writes the calls of a log that was read apart, or adds them. process and frames as for
 * calls_add(). The pack's error is -E2BIG if there are more functions or failures than are kept.
 */
void calls_pack(struct calls *calls, uint32_t process, const struct frames *frames,
		struct pack *pack);

void calls_free(struct calls *calls);

/* Sorts the rows by total time, and the failures by their number. Call it after the last call. */
void calls_sort(struct calls *calls);

extern const struct exporter analysis_calls;

#endif
