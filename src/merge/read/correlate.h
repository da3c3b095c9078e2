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
 *
 * Joins work that the GPU itself launched in a graph to the replay of that graph.
 *
 * The work of a conditional body has no correlation id, but has ids of nodes of the executable
 * graph. Replays of one executable graph never overlap, so work between two pieces of work of one
 * replay belongs to that replay. Work between two replays belongs to one of them:
 * - to the earlier one, if the later one was not called yet when the work began
 * - to their owner, if both calls have the same owner and the same code created the node for both
 * - otherwise its call is unknown, also if a launch may be missing because recording was paused
 *
 * Only graphs with conditional nodes are considered. The GPU may launch other graphs as a whole,
 * which are part of no replay. Work is sorted in a window of fixed size (reorder_buffer.h). Up to
 * REPLAYS_WAITING_MAX pieces then wait for the next work with an id.
 */
#ifndef XT_MERGE_CORRELATE_H
#define XT_MERGE_CORRELATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/nodes.h"
#include "merge/read/pauses.h"
#include "xtrace/log_format.h"

struct correlate;
struct replays;

enum launch_flag {
	LAUNCH_EXPECTED = 1u << 0, /* the call creates work and succeeded, so work should follow */
	LAUNCH_GRAPH = 1u << 1,
	LAUNCH_MATCHED = 1u << 2,   /* work was joined */
	LAUNCH_TRANSFER = 1u << 3,  /* a copy or memset call */
	LAUNCH_MEMORY = 1u << 4,    /* allocates or frees */
	LAUNCH_UNSAMPLED = 1u << 5, /* has no stack, in logs of versions that sampled them */
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
	/* among the calls that exporters receive, from 1; 0: none, UINT32_MAX: later */
	uint32_t number;
	/* time since the thread's previous submission; UINT32_MAX: that or longer */
	uint32_t since_ns;
	uint32_t duration_ns; /* of the call; UINT32_MAX: that or longer */
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

/* True if it is one execution of a CUDA graph, whose nodes were not recorded. */
static inline bool work_is_whole_graph(const struct work *work)
{
	return work->kind == WORK_KERNEL && (uint32_t)work->graph_node == XT_NODE_WHOLE_GRAPH;
}

/*
 * True if the GPU launched the work as a graph node. CUPTI does not report the call it belongs to.
 */
static inline bool work_is_by_device(const struct work *work)
{
	return !work->correlation && work->graph_node && work->kind < WORK_KINDS &&
	       !work_is_whole_graph(work);
}

/*
 * Receives each piece of work exactly once. launch is its call, or NULL if there is none. In a
 * merge, `attribute` is attribute_work() or attribute_work_with_id() (sums/reading.c); events.c
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

/* limits NULL: the constants in correlate.c. */
void correlate_new(struct correlate **correlate_out, const struct correlate_limits *limits,
		   struct work_receiver receiver);
void correlate_free(struct correlate *correlate);

/* Id 0 means no id: such a row is never joined. */
void correlate_work(struct correlate *correlate, const struct work *work);

/*
 * Call it after the last row. Passes on all waiting work without a call, and completes the counts.
 */
const struct correlate_counts *correlate_finish(struct correlate *correlate);

/*
 * The rest of this header is for the loops that run for every call and every kernel. reserve() and
 * commit() add a call without a copy. newest() and join() handle the usual case of work. Only these
 * functions and correlate.c may use the structs.
 */

/* low_id: lower half of the id. It nearly always rules out other ids without reading the entry. */
struct newest_call {
	uint32_t position;
	uint32_t low_id;
};

struct window_calls {
	struct launch *entries;
	struct newest_call *newest; /* by hash */
	uint32_t size;
	uint64_t first; /* position of the first call of the log */
	uint64_t count;
};

/*
 * Open hash table; entries with correlation 0 are free. Not xt_hash_table: it is on the hot path,
 * and it evicts entries.
 */
struct old_calls {
	struct launch *entries;
	uint32_t size;
	uint32_t used;
	uint32_t used_max;
	uint64_t added;
	uint8_t round; /* advances after every used_max / OLD_ROUNDS added calls */
	uint8_t swept_round;
};

struct waiting {
	struct work work;
	uint32_t next;	/* previous position with the same hash */
	uint32_t taken; /* next in the list of work that a call takes */
	bool gone;
};

struct waiting_work {
	struct waiting *entries;
	uint32_t *newest;
	uint32_t size;
	uint32_t size_max;
	uint64_t first; /* the oldest that may still wait */
	uint64_t count;
};

struct correlate {
	struct window_calls window;
	struct old_calls old;
	struct waiting_work waiting;
	struct work_receiver receiver;
	struct correlate_counts counts;
};

/* Ids are consecutive. Neighbours get neighbouring slots, for locality. */
static inline uint32_t hash_id(uint64_t correlation)
{
	return (uint32_t)correlation + (uint32_t)(correlation >> 20) * 0x9e3779b1u;
}

/* Returns false if the call has its work and is not a graph launch. */
static inline bool may_get_work(const struct launch *launch)
{
	return launch->flags & LAUNCH_GRAPH ||
	       (launch->flags & (LAUNCH_EXPECTED | LAUNCH_MATCHED)) == LAUNCH_EXPECTED;
}

/* True if the newest call with that hash has that id. The next entry may be reserved already. */
static inline bool is_newest(const struct window_calls *window, uint32_t hash, uint64_t correlation)
{
	const struct newest_call *newest = &window->newest[hash];
	uint32_t age = (uint32_t)window->count - newest->position;

	return newest->low_id == (uint32_t)correlation && age < window->size &&
	       window->entries[newest->position & (window->size - 1)].correlation == correlation;
}

/* For correlate_reserve(): keeps a call that leaves the window and may get work. */
void correlate_keep_old(struct correlate *c, const struct launch *launch);

/* For correlate_commit(): a call without an id is counted and dropped. */
void correlate_drop(struct correlate *c, struct launch *entry);

/* For correlate_commit(): joins the work that waits for this call, in the order of its arrival. */
void correlate_join_waiting(struct correlate *c, struct launch *launch);

/* Returns the place for the next call. Fill in all of it, then commit it. This saves a copy. */
static inline struct launch *correlate_reserve(struct correlate *c)
{
	struct launch *entry = &c->window.entries[c->window.count & (c->window.size - 1)];

	if (may_get_work(entry))
		correlate_keep_old(c, entry);
	return entry;
}

static inline void correlate_commit(struct correlate *c)
{
	struct window_calls *window = &c->window;
	uint32_t mask = window->size - 1;
	struct launch *entry = &window->entries[window->count & mask];
	uint32_t h = hash_id(entry->correlation) & mask;

	if (!entry->correlation) {
		correlate_drop(c, entry);
		return;
	}
	if (is_newest(window, h, entry->correlation))
		c->counts.launches_recurring++;
	entry->next = window->newest[h].position;
	window->newest[h] =
		(struct newest_call){(uint32_t)window->count++, (uint32_t)entry->correlation};
	if (c->waiting.first < c->waiting.count)
		correlate_join_waiting(c, entry);
}

/*
 * Returns the call of work, if that is the newest call with its hash, as in nearly all cases.
 * Otherwise returns NULL: use correlate_work().
 */
static inline struct launch *correlate_newest(const struct correlate *c, uint64_t correlation,
					      uint64_t start_ns)
{
	const struct window_calls *window = &c->window;
	uint32_t mask = window->size - 1;
	uint32_t position = window->newest[hash_id(correlation) & mask].position;
	struct launch *launch = &window->entries[position & mask];

	if (launch->correlation != correlation || launch->enter_ns > start_ns ||
	    (uint32_t)window->count - position - 1 >= window->size || !correlation)
		return NULL;
	return launch;
}

/*
 * nodes know which graphs have conditional nodes, and who created them. nodes and pauses must
 * outlive the result. The receiver gets each piece of work passed to replays_join() exactly once.
 */
void replays_new(struct replays **replays_out, struct nodes *nodes, const struct pauses *pauses,
		 struct work_receiver receiver);
void replays_free(struct replays *replays);

/* Adds work of a graph that was joined by its id. launch NULL: its call is unknown. */
void replays_pass(struct replays *replays, const struct work *work, const struct launch *launch);

/*
 * Adds work for which work_is_by_device() is true. If its call is found, the work gets that call's
 * correlation id.
 */
void replays_join(struct replays *replays, const struct work *work);

/* Call it after the last work. */
void replays_finish(struct replays *replays);

#endif
