/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API calls by function: how many, how long; and those that failed by error and call path.
 *
 * Memory is bounded: a function has a histogram of fixed size, from which the 99th percentile is
 * taken with an error below 1 %; functions and failures beyond the limits are added up as others.
 */
#ifndef XT_MERGE_CALLS_H
#define XT_MERGE_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "merge/naming/frames.h"
#include "merge/read/correlate.h"

#define CALLS_FUNCTIONS_MAX 512
#define CALLS_FAILURES_MAX  4096

/*
 * Values below 128 have a bucket each; above, each power of two is cut into 64 buckets. The middle
 * of a bucket is off by 1/128 of any value in it at most.
 */
#define CALLS_BUCKETS (57 * 64 + 128)

struct call_row {
	uint32_t name; /* in paths; NAME_EMPTY: all functions beyond the limit */
	uint64_t count;
	uint64_t failed_count;
	uint64_t total_ns;
	uint64_t min_ns;
	uint64_t max_ns;
	uint64_t *buckets; /* CALLS_BUCKETS numbers of calls, by duration */
};

struct failure {
	uint32_t process; /* name in paths; NAME_EMPTY: no frame for it */
	uint32_t name;
	uint32_t node; /* in paths: the frame that called; PATH_ROOT if not known */
	uint64_t result;
	uint64_t count; /* 0: a free place */
};

/* All zeros is an empty one. */
struct calls {
	struct call_row *rows;
	size_t count;
	size_t capacity;
	uint32_t *places; /* by name: row + 1, or 0 */
	size_t place_capacity;
	struct failure *failures; /* hash table of 2 * CALLS_FAILURES_MAX */
	uint32_t failure_count;
	uint64_t other_failure_count; /* beyond the limit */
};

/* process is the frame at the root of its path, NAME_EMPTY: none. 0 or -ENOMEM. */
int calls_add(struct calls *calls, uint32_t process, const struct frames *frames,
	      const struct launch *call, uint64_t duration_ns, uint64_t result);
void calls_free(struct calls *calls);

/* The duration that 99 % of the calls did not exceed. */
uint64_t calls_p99_ns(const struct call_row *row);

/* Sorts the rows by total time, and puts the failures, most frequent first, to the front. */
void calls_sort(struct calls *calls);

#endif
