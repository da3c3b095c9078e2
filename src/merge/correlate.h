/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins kernels to the calls that launched them, by correlation id and nothing else.
 *
 * Calls and kernels come in the order of the file, either of them first. Both are kept until
 * they have met; memory is bounded whatever the length of the log:
 * - The latest calls are in a window. What leaves it and may still get kernels (no kernel came
 *   yet, or it launched a graph) goes to a table of old calls. Only if that is full, those are
 *   given up for which nothing has come for the longest time.
 * - Kernels that wait for their call are in a second window; if it is full, the oldest goes on
 *   without a call.
 * A call may have any number of kernels: a graph launch has one for each node.
 */
#ifndef XT_MERGE_CORRELATE_H
#define XT_MERGE_CORRELATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Powers of two. */
#define CORRELATE_WINDOW_CALLS	      (1u << 18)
#define CORRELATE_OLD_CALLS_MAX	      (1u << 19)
#define CORRELATE_WAITING_KERNELS_MAX (1u << 20)

enum launch_flag {
	LAUNCH_EXPECTED = 1u << 0, /* a kernel is to come of it: it is a launch and succeeded */
	LAUNCH_GRAPH = 1u << 1,
	LAUNCH_MET = 1u << 2, /* a kernel came */
};

/* What is kept of a call. */
struct launch {
	uint64_t correlation;
	uint64_t enter_ns;
	uint32_t stack;	 /* XT_STACK_ID */
	uint32_t thread; /* XT_THREAD_ID */
	uint32_t next;	 /* correlate.c's */
	uint16_t api;	 /* place in the model's apis */
	uint8_t flags;	 /* enum launch_flag */
	uint8_t round;	 /* correlate.c's */
};

struct kernel {
	uint64_t correlation;
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t graph_node;
	uint32_t stream; /* XT_STREAM_ID */
	uint32_t shape;	 /* XT_SHAPE_ID */
};

/* Told of each kernel exactly once: with its call, or with NULL if there is none. */
struct correlate_listener {
	void (*joined)(void *context, const struct kernel *kernel, const struct launch *launch);
	void *context;
};

struct correlate_limits {
	uint32_t window_calls;
	uint32_t old_calls_max;
	uint32_t waiting_kernels_max;
};

struct correlate_counts {
	uint64_t kernels_joined;
	uint64_t kernels_alone;	 /* no call with that id */
	uint64_t launches_alone; /* LAUNCH_EXPECTED, and no kernel came */
};

struct correlate;

/* limits NULL: the ones above. 0 or -ENOMEM. */
int correlate_new(struct correlate **correlate_out, const struct correlate_limits *limits,
		  struct correlate_listener listener);
void correlate_free(struct correlate *correlate);

/* Both: 0 or -ENOMEM. Id 0 means none: such a row meets nothing. */
int correlate_launch(struct correlate *correlate, const struct launch *launch);
int correlate_kernel(struct correlate *correlate, const struct kernel *kernel);

/* No more will come: kernels that still wait go on alone, and the counts are complete. */
const struct correlate_counts *correlate_finish(struct correlate *correlate);

#endif
