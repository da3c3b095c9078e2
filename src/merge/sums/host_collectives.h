/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes collectives of what gloo does on the CPU between two copies.
 *
 * A rank arrives when its data is on the host, and goes on when the copy back is launched. The
 * second time is known only later, and the comparison of ranks takes work in the order of its
 * start. So work waits here until all collectives that began before it are complete.
 *
 * Broadcasts, reductions and the like have only one of the copies in some ranks. They are left out.
 */
#ifndef XT_MERGE_HOST_COLLECTIVES_H
#define XT_MERGE_HOST_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/sums/aggregate.h"
#include "merge/sums/timeline.h"

#define HOST_OPEN_MAX	 64 /* collectives at the same time; the oldest are dropped */
#define HOST_THREADS_MAX 64 /* of gloo; others share the last entry */
#define HOST_SPANS_MAX	 64

struct reading;
struct queued_work;

/* A collective whose data was copied to the host. */
struct host_begin {
	struct stretch copy;
	struct owner owner; /* of the copy */
	uint8_t operation;
};

/* The last copies of a thread of gloo. */
struct host_thread {
	uint32_t thread; /* XT_THREAD_ID */
	uint32_t stream; /* of its last copy to the GPU */
	uint64_t enter_ns;
	uint64_t begun_count; /* collectives that had begun by then */
};

struct host_span {
	uint64_t from_ns, until_ns;
};

/* Zeros are a valid beginning. */
struct host_collectives {
	struct queued_work *queue; /* from first on, by start */
	size_t first, count, capacity;
	struct host_begin open[HOST_OPEN_MAX]; /* by launch */
	size_t open_count;
	struct host_thread threads[HOST_THREADS_MAX];
	size_t thread_count;
	struct host_span spans[HOST_SPANS_MAX]; /* the last collectives that were passed */
	size_t span_count;
	uint64_t begun_count;
	uint64_t last_enter_ns, last_start_ns; /* of the one launched last, among those complete */
};

/* Adds work, instead of rank_log_add(). Returns 0 or -ENOMEM. */
int host_collectives_add(struct reading *reading, const struct stretch *stretch);

/* Passes all work on. Returns 0 or -ENOMEM. */
int host_collectives_finish(struct reading *reading);
void host_collectives_free(struct host_collectives *host);

#endif
