/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins work (kernels, copies, memsets, memory operations) to the call that created it, by
 * correlation id only.
 *
 * Calls and work come in the order of the file, either of them first. Each is kept until it is
 * joined. Memory is bounded, whatever the length of the log:
 * - A window has the latest calls. A call that leaves it and may still get work moves to a table of
 *   old calls. When that table is full, it evicts the calls that got no work for the longest time.
 * - Work without its call waits in a second window. When that is full, the oldest work is passed on
 *   without a call.
 *
 * A graph launch has work for each node. Ids recur after 2^32 calls at the earliest. If they recur
 * sooner, work belongs to the latest call with its id that was entered before the work began.
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
	LAUNCH_EXPECTED = 1u << 0, /* the call creates work and succeeded, so work should follow */
	LAUNCH_GRAPH = 1u << 1,
	LAUNCH_MATCHED = 1u << 2,  /* work was joined */
	LAUNCH_TRANSFER = 1u << 3, /* a copy or memset call */
	LAUNCH_MEMORY = 1u << 4,   /* allocates or frees */
	LAUNCH_RATE_BIT = 5,	   /* bits from here on: log2 of the sampling rate of its stack */
};

/* A call waiting to be joined. */
struct launch {
	uint64_t correlation;
	uint64_t enter_ns;
	uint32_t stack;	   /* XT_STACK_ID */
	uint32_t thread;   /* XT_THREAD_ID */
	uint32_t range;	   /* innermost NVTX range around the call: a node of the model's ranges */
	uint32_t next;	   /* used by correlate.c */
	uint32_t callsite; /* callsite (callsite_stats.h); 0: unknown */
	uint32_t before;   /* callsite that last blocked the same thread; 0: none */
	uint32_t took_ns;  /* duration of a graph launch, else 0; UINT32_MAX: at least that */
	/* time since the thread's previous submission; UINT32_MAX: at least that */
	uint32_t since_ns;
	uint32_t duration_ns; /* of the call; UINT32_MAX: at least that */
	uint16_t api;	      /* index into the model's apis */
	uint8_t flags;	      /* enum launch_flag */
	uint8_t round;	      /* used by correlate.c */
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
	uint64_t graph_node; /* 0: not in a graph; for memory operations: the address */
	uint64_t bytes;	     /* of copies, memsets and allocations */
	uint32_t stream;     /* XT_STREAM_ID; for memory operations: the device */
	/* XT_SHAPE_ID of kernels, XT_COPY_SHAPE_ID of copies, otherwise CUPTI's memory kind */
	uint32_t shape;
	uint64_t ticket;    /* identifies the work for the caller */
	uint8_t kind;	    /* enum work_kind */
	bool is_collective; /* the kernel is a collective */
};

/*
 * True if the GPU launched the work as a graph node. CUPTI does not report the call it belongs to.
 */
static inline bool work_is_by_device(const struct work *work)
{
	return !work->correlation && work->graph_node && work->kind < WORK_KINDS;
}

/*
 * Receives each piece of work exactly once. launch is its call, or NULL if there is none. In a
 * merge, `attribute` is attribute_work() or attribute_work_with_id() (sums/attribute.c); events.c
 * sets it.
 */
struct work_receiver {
	void (*attribute)(void *context, const struct work *work, const struct launch *launch);
	void *context;
	uint64_t from_ns; /* the log has no earlier work, so earlier calls are not unmatched */
};

struct correlate_limits {
	uint32_t window_calls;
	uint32_t old_calls_max;
	uint32_t waiting_work_max;
	uint64_t first_position; /* for tests: start as if this many calls had passed */
};

struct correlate_counts {
	uint64_t work_joined;
	uint64_t work_unmatched;	   /* no call with that id */
	uint64_t launches_unmatched;	   /* LAUNCH_EXPECTED without work */
	uint64_t graph_launches_unmatched; /* the same with LAUNCH_GRAPH */
	uint64_t transfers_unmatched;	   /* the same for copy and memset calls */
	/* calls with the id of an earlier call that may still get work */
	uint64_t launches_recurring;
};

struct correlate;

/* limits NULL: the constants above. Returns 0 or -ENOMEM. */
int correlate_new(struct correlate **correlate_out, const struct correlate_limits *limits,
		  struct work_receiver receiver);
void correlate_free(struct correlate *correlate);

/*
 * Returns the place for the next call, or NULL if out of memory. Fill in all of it, then commit it.
 * This saves a copy.
 */
struct launch *correlate_reserve(struct correlate *correlate);
void correlate_commit(struct correlate *correlate);

/* Both return 0 or -ENOMEM. Id 0 means no id: such a row is never joined. */
int correlate_launch(struct correlate *correlate, const struct launch *launch);
int correlate_work(struct correlate *correlate, const struct work *work);

/*
 * Call it after the last row. Passes on all waiting work without a call, and completes the counts.
 */
const struct correlate_counts *correlate_finish(struct correlate *correlate);

#endif
