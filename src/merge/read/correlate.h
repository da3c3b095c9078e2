/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins work (kernels, copies, sets, and operations on memory) to the calls that asked for it, by
 * correlation id and nothing else.
 *
 * Calls and work come in the order of the file, either of them first. Both are kept until they
 * have met; memory is bounded whatever the length of the log:
 * - The latest calls are in a window. What leaves it and may still get work (none came yet, or it
 *   launched a graph) goes to a table of old calls. Only if that is full, those are given up for
 *   which nothing has come for the longest time.
 * - Work that waits for its call is in a second window; if it is full, the oldest goes on
 *   without a call.
 * A call may have any amount of work: a graph launch has some for each node.
 *
 * Ids recur after 2^32 calls at the earliest, by which time the former call is settled. Where they
 * recur nevertheless, work that comes after several calls with its id is of the latest of them that
 * was entered before it began.
 */
#ifndef XT_MERGE_CORRELATE_H
#define XT_MERGE_CORRELATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Powers of two. */
#define CORRELATE_WINDOW_CALLS	   (1u << 17)
#define CORRELATE_OLD_CALLS_MAX	   (1u << 17)
#define CORRELATE_WAITING_WORK_MAX (1u << 20)

enum launch_flag {
	LAUNCH_EXPECTED = 1u << 0, /* work is to come of it: that is its class, and it succeeded */
	LAUNCH_GRAPH = 1u << 1,
	LAUNCH_MATCHED = 1u << 2,  /* work came */
	LAUNCH_TRANSFER = 1u << 3, /* it copies or sets */
	LAUNCH_MEMORY = 1u << 4,   /* it allocates or frees */
	LAUNCH_RATE_BIT = 5,	   /* from here on: one in 1 << that had its stack taken */
};

/* What is kept of a call. */
struct launch {
	uint64_t correlation;
	uint64_t enter_ns;
	uint32_t stack;	   /* XT_STACK_ID */
	uint32_t thread;   /* XT_THREAD_ID */
	uint32_t range;	   /* the innermost NVTX range around it, as place in the tree of ranges */
	uint32_t next;	   /* correlate.c's */
	uint32_t callsite; /* the callsite (callsite_stats.h), 0: not known */
	uint32_t before;   /* the callsite that had held its thread up, 0: none had */
	uint32_t took_ns;  /* of graphs: UINT32_MAX: that or longer */
	uint32_t
		since_ns; /* its thread last asked for work so long before: UINT32_MAX: that or longer */
	uint16_t api;  /* place in the model's apis */
	uint8_t flags; /* enum launch_flag */
	uint8_t round; /* correlate.c's */
};

enum work_kind {
	WORK_KERNEL,
	WORK_COPY,
	WORK_MEMSET,
	WORK_KINDS,
	WORK_ALLOC = WORK_KINDS,
	WORK_FREE
};

struct work {
	uint64_t correlation;
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t graph_node; /* 0: outside graphs */
	uint64_t bytes;	     /* of copies, sets and allocations */
	uint32_t stream;     /* XT_STREAM_ID */
	uint32_t shape;	     /* XT_SHAPE_ID, XT_COPY_SHAPE_ID; else CUPTI's memory kind */
	uint64_t ticket;     /* whoever hands it in may know it again by this */
	uint8_t kind;	     /* enum work_kind */
	bool is_collective;  /* a kernel that is one */
};

/* The GPU itself launched a graph's node, for a call whose id it does not say. */
static inline bool work_is_by_device(const struct work *work)
{
	return !work->correlation && work->graph_node && work->kind < WORK_KINDS;
}

/* Told of all work exactly once: with its call, or with NULL if there is none. */
struct correlate_listener {
	void (*joined)(void *context, const struct work *work, const struct launch *launch);
	void *context;
};

struct correlate_limits {
	uint32_t window_calls;
	uint32_t old_calls_max;
	uint32_t waiting_work_max;
	uint64_t first_position; /* for tests: begin as if this many calls had passed */
};

struct correlate_counts {
	uint64_t work_joined;
	uint64_t work_unmatched;	   /* no call with that id */
	uint64_t launches_unmatched;	   /* LAUNCH_EXPECTED, and nothing came */
	uint64_t graph_launches_unmatched; /* likewise, with LAUNCH_GRAPH */
	uint64_t transfers_unmatched;	   /* likewise, of calls that copy or set */
	uint64_t launches_recurring;	   /* with the id of another that may still get work */
};

struct correlate;

/* limits NULL: the ones above. 0 or -ENOMEM. */
int correlate_new(struct correlate **correlate_out, const struct correlate_limits *limits,
		  struct correlate_listener listener);
void correlate_free(struct correlate *correlate);

/*
 * The place of the next call, for the caller to fill in whole, and then to hand in. (What is
 * written once need not be copied.) NULL if memory ran out.
 */
struct launch *correlate_reserve(struct correlate *correlate);
void correlate_commit(struct correlate *correlate);

/* Both: 0 or -ENOMEM. Id 0 means none: such a row meets nothing. */
int correlate_launch(struct correlate *correlate, const struct launch *launch);
int correlate_work(struct correlate *correlate, const struct work *work);

/* No more will come: work that still waits goes on alone, and the counts are complete. */
const struct correlate_counts *correlate_finish(struct correlate *correlate);

#endif
