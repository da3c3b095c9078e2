/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane is what one application thread has of the tracer: its ring in the spool, its stack memo
 * and the memory of its walks. A thread claims one at its first recorded call; the writer thread
 * takes it back when the thread is gone and the ring is drained, for the next one.
 *
 * A ring begins small, in the memory that it takes as in that which passes through the caches: its
 * thread goes back to the front at the end of the ring's window, by the same padding as at the end
 * of all its data. Where the window fills faster than the writer looks, the writer widens it.
 *
 * Ring protocol: the thread alone advances write_pos (release, ring_commit()), the writer alone
 * advances free_pos (release, ring_free()); each reads the other's with acquire.
 */
#ifndef XT_INJECT_THREAD_BUFFER_H
#define XT_INJECT_THREAD_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/capture/stack_cache.h"
#include "inject/unwind/stack_modules.h"
#include "xtrace/spool_format.h"

#define LANE_TEXT_BYTES	   4096
#define LANES_MAX	   4096
#define RING_DATA_BYTES	   (256u << 10)
#define RING_FIRST_BYTES   (64u << 10) /* as much of it is used until the thread needs more */
#define RING_TOUCHED_BYTES (8u << 10)  /* of a lane that a thread makes for itself */
#define LANE_STACK_BYTES   (64u << 10) /* for walks; touched as far as it is used */
#define LANES_SPARE	   4	       /* the writer keeps as many ready for threads to come */

#define LANE_PAYLOAD_BYTES 2048

/* A graph node of which CUPTI has said that it is being made: only then does it tell the type. */
#define LANE_STARTING_NODES 32
struct starting_node {
	const void *node;
	uint64_t order; /* 0: the place is free */
	uint32_t type;
};

/* In a child that was forked without the C library's knowledge a lane reads as zeros: as neither of these,
 * and never idle. */
enum lane_state { LANE_FREE = 1, LANE_CLAIMED = 2, LANE_INHERITED = 3 /* for a moment: lane.c */ };

/* As long as there is no writer, who would take them back, so many lanes are kept for it, with what they hold;
 * from then on a thread that has gone leaves its lane to the next. */
#define LANES_KEPT 16

struct lane {
	/* The owner's; what each call reads and writes is the first two lines of the cache. */
	struct xt_ring_header *ring;
	uint8_t *data;
	uint64_t write_pos;
	uint64_t free_pos_seen;	 /* a free_pos read earlier: there is at least this much room */
	uint64_t rare_ns;	 /* spent in walks and waiting, all of it */
	uint32_t window;	 /* bytes of data[] in use: what is behind has no memory yet */
	uint32_t hits_unaudited; /* memo hits since the last that was checked */
	uint32_t memo_epoch;
	atomic_uint
		memo_epoch_wanted; /* the writer asks for a new definition of all slots; rarely */
	uintptr_t within;	   /* LANE_IDLE or where: lane_enter(), lane_leave() */
	struct stack_memo memo
		__attribute__((aligned(64))); /* what a hit reads of it stands first */
	uint64_t gave_up_at; /* free_pos + 1 when waiting for room was in vain; 0: never */
	uint64_t timed_ns;   /* spent in those calls that were timed, without that */
	uint64_t timed_count;
	uint64_t unsampled_count; /* calls whose stack was not taken, by chance */
	uint64_t
		event_return; /* of the NVTX call that is within the lane: where it returns to; or 0 */
	uint32_t chance;      /* sampling.h */
	void *walk_stack_top; /* call_on_stack.h */
	struct stack_modules modules;
	struct stack_walk walk;
	struct python_walk python;
	char text[LANE_TEXT_BYTES]; /* of the event that is being committed */

	uint8_t payload[LANE_PAYLOAD_BYTES]; /* likewise: see nvtx_payload.h */

	struct starting_node starting[LANE_STARTING_NODES]; /* nodes are within each other */
	struct starting_node made;			    /* last */
	uint64_t starting_count;

	/* Shared. */
	atomic_uint window_ready; /* the writer's: the window may be as wide */
	atomic_uint state;	  /* enum lane_state; claimed by compare-and-swap */

	/* The writer's. */
	uint64_t read_pos;
	uint32_t known_thread_id; /* whose THREAD row was written */
	bool is_budgeted;	  /* it had a thread; whoever claims it sets this */
	bool is_unbacked;	  /* its ring is plain memory, not in the spool */
	bool definitions_lost;	  /* there was no memory for rows: ask for new definitions */
	char first_name[16];	  /* of the thread, when it claimed the lane */
	bool owner_gone;
	uint32_t slots_changed; /* slot_stack_id before this one differs from the one in the ring */
	uint32_t slots_used;	/* those from here on never had an id */
	uint32_t slot_stack_id[XT_STACK_SLOT_COUNT];   /* as of read_pos */
	uint32_t slot_module_id[XT_MODULE_SLOT_COUNT]; /* likewise */
	bool modules_changed;			       /* slot_module_id differs from the ring's */
};

_Static_assert(offsetof(struct lane, memo) == 64, "what a call needs of a lane is one line");

/* The calling thread's lane, or NULL. */
extern _Thread_local struct lane *thread_lane __attribute__((tls_model("initial-exec")));

#define LANE_IDLE 1 /* (0 is what a child reads of its parent's) */

/*
 * The lane is not idle: has a signal handler jumped out of what was within it, by siglongjmp()? It has if that stood on
 * the stack where the frames from the caller up to regs stand now, as a loop that goes on calling comes by there. An
 * NVTX call stands farther up than the calls of CUDA that come after it: it was left if its frame was overwritten. Then
 * the lane is made whole, and true. Where that cannot be told, false.
 */
__attribute__((cold)) bool lane_was_left(struct lane *lane, const struct caller_regs *regs);

/*
 * The owner is about to work with its lane; false: it does so already, and this is a signal handler in the middle of
 * that. The fences are for the compiler: a handler finds the lane as it is between two calls, or not idle.
 */
static inline bool lane_enter(struct lane *lane, const struct caller_regs *regs)
{
	if (__builtin_expect(lane->within != LANE_IDLE, 0) && !lane_was_left(lane, regs))
		return false;
	lane->within = (uintptr_t)regs;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

static inline void lane_leave(struct lane *lane)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lane->within = LANE_IDLE;
}

/* Claims a lane for the calling thread: a free one or a new one. NULL if none can be had. Cold
 * path: makes system calls, takes no lock, calls no malloc. */
struct lane *lane_claim(void);

/* The writer begins: it alone takes lanes back from now on. */
void lanes_have_writer(void);

/* Has the thread that has it ended? */
bool lane_is_orphaned(const struct lane *lane);

/* In a forked child: forgets all lanes, which are of threads that it does not have. */
void lanes_abandon(void);

/* Creates a free lane ahead of need. False if there is no memory or no room for more. */
bool lane_create_spare(void);

/* For the writer: lanes [0, lane_count()); an entry may be NULL for a moment. */
uint32_t lane_count(void);
struct lane *lane_at(uint32_t index);

/*
 * While the log cannot be written, rings stay full, and threads do not wait for room in them.
 * Rings of ended threads keep their events, so only LANES_STALLED more rings are made. Calls that
 * find none are counted. Writer thread.
 */
#define LANES_STALLED 256
void lanes_stall(bool is_stalled);
extern atomic_bool lanes_are_stalled;

/* Calls that found no lane. */
extern atomic_uint_fast64_t lane_calls_without;

/* The writer: how many bytes of the ring wait for a flush; and makes it wider, if the budget allows. */
uint32_t lane_used_bytes(const struct lane *lane);
void lane_widen(struct lane *lane);

/* The writer: what a lane without a thread has grown to is given back. */
void lane_shrink(struct lane *lane);

/*
 * Moves write_pos to where a record of bytes has room in the window, at the front if need be. False
 * if there is none, yet. Once a turn of the ring.
 */
bool ring_turn(struct lane *lane, uint32_t bytes);

/* Room for a record of bytes (a multiple of 8) that does not wrap, or NULL. The record becomes
 * visible with ring_commit() of the same size. Hot path. */
static inline void *ring_reserve(struct lane *lane, uint32_t bytes)
{
	uint32_t place = lane->write_pos & (RING_DATA_BYTES - 1);

	if (__builtin_expect(place + bytes > lane->window, 0)) {
		if (!ring_turn(lane, bytes))
			return NULL;
		place = lane->write_pos & (RING_DATA_BYTES - 1);
	}
	if (lane->write_pos + bytes - lane->free_pos_seen > RING_DATA_BYTES) {
		/* Pairs with ring_free(): what is overwritten now has been read. */
		lane->free_pos_seen = __atomic_load_n(&lane->ring->free_pos, __ATOMIC_ACQUIRE);
		if (lane->write_pos + bytes - lane->free_pos_seen > RING_DATA_BYTES)
			return NULL;
	}
	return lane->data + place;
}

/*
 * The writer is behind, most likely because all processors are taken: waits for it, at most
 * RING_PATIENCE_NS, and not again until it has made room. NULL if it did not. Cold path: sleeps.
 */
#define RING_PATIENCE_NS 1000000000
void *ring_wait_for_room(struct lane *lane, uint32_t bytes);

/* As ring_reserve(), but rather waits a moment than loses the record. */
static inline void *ring_reserve_or_wait(struct lane *lane, uint32_t bytes)
{
	void *place = ring_reserve(lane, bytes);

	return place ? place : ring_wait_for_room(lane, bytes);
}

static inline void ring_commit(struct lane *lane, uint32_t bytes)
{
	lane->write_pos += bytes;
	/* Pairs with the writer's acquire in ring_written(). */
	__atomic_store_n(&lane->ring->write_pos, lane->write_pos, __ATOMIC_RELEASE);
}

static inline uint64_t ring_written(const struct lane *lane)
{
	return __atomic_load_n(&lane->ring->write_pos, __ATOMIC_ACQUIRE);
}

static inline void ring_free(struct lane *lane, uint64_t pos)
{
	/* Pairs with the acquire in ring_reserve(). */
	__atomic_store_n(&lane->ring->free_pos, pos, __ATOMIC_RELEASE);
}

/* One writer; relaxed so that a reader sees whole values. */
static inline void lane_add(uint64_t *sum, uint64_t value)
{
	__atomic_store_n(sum, *sum + value, __ATOMIC_RELAXED);
}

static inline void lane_count_up(struct lane *lane, enum xt_ring_counter counter)
{
	lane_add(&lane->ring->counters[counter], 1);
}

#endif
