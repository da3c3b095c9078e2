/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread buffer is what one application thread has of the tracer: its ring in the crash buffer, its stack cache
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
#include "inject/capture/stack_modules.h"
#include "xtrace/crash_buffer_format.h"

#define THREAD_BUFFER_TEXT_BYTES  4096
#define THREAD_BUFFERS_MAX	  4096
#define RING_DATA_BYTES		  (256u << 10)
#define RING_FIRST_BYTES	  (64u << 10) /* as much of it is used until the thread needs more */
#define RING_TOUCHED_BYTES	  (8u << 10) /* of a thread buffer that a thread makes for itself */
#define THREAD_BUFFER_STACK_BYTES (64u << 10) /* for walks; touched as far as it is used */
#define THREAD_BUFFERS_SPARE	  4 /* the writer keeps as many ready for threads to come */

#define THREAD_BUFFER_PAYLOAD_BYTES 2048

/* A graph node of which CUPTI has said that it is being made: only then does it tell the type. */
#define THREAD_BUFFER_STARTING_NODES 32
struct starting_node {
	const void *node;
	uint64_t order; /* 0: the place is free */
	uint32_t type;
};

/* In a child that was forked without the C library's knowledge a thread buffer reads as zeros: as neither of these,
 * and never idle. */
enum thread_buffer_state {
	THREAD_BUFFER_FREE = 1,
	THREAD_BUFFER_CLAIMED = 2,
	THREAD_BUFFER_INHERITED = 3 /* for a moment: lane.c */
};

/* As long as there is no writer, who would take them back, so many thread buffers are kept for it, with what they hold;
 * from then on a thread that has gone leaves its thread buffer to the next. */
#define THREAD_BUFFERS_KEPT 16

struct thread_buffer {
	/* The owner's; what each call reads and writes is the first two lines of the cache. */
	struct xt_ring_header *ring;
	uint8_t *data;
	uint64_t write_pos;
	uint64_t free_pos_seen;	 /* a free_pos read earlier: there is at least this much room */
	uint64_t slow_path_ns;	 /* spent in walks and waiting, all of it */
	uint32_t window;	 /* bytes of data[] in use: what is behind has no memory yet */
	uint32_t hits_unaudited; /* stack cache hits since the last that was checked */
	uint32_t cache_epoch;
	atomic_uint
		cache_epoch_wanted; /* the writer asks for a new definition of all slots; rarely */
	uintptr_t
		within; /* THREAD_BUFFER_IDLE or where: thread_buffer_enter(), thread_buffer_leave() */
	struct stack_cache cache
		__attribute__((aligned(64))); /* what a hit reads of it stands first */
	uint64_t backoff_pos; /* free_pos + 1 when waiting for room was in vain; 0: never */
	uint64_t timed_ns;    /* spent in those calls that were timed, without that */
	uint64_t timed_count;
	uint64_t unsampled_count; /* calls whose stack was not taken, by chance */
	uint64_t
		event_return; /* of the NVTX call that is within the thread buffer: where it returns to; or 0 */
	uint32_t rng_state;   /* sampling.h */
	void *walk_stack_top; /* call_on_stack.h */
	struct stack_modules modules;
	struct stack_walk walk;
	struct python_walk python;
	char text[THREAD_BUFFER_TEXT_BYTES]; /* of the event that is being committed */

	uint8_t payload[THREAD_BUFFER_PAYLOAD_BYTES]; /* likewise: see nvtx_payload.h */

	struct starting_node
		starting[THREAD_BUFFER_STARTING_NODES]; /* nodes are within each other */
	struct starting_node made;			/* last */
	uint64_t starting_count;

	/* Shared. */
	atomic_uint window_ready; /* the writer's: the window may be as wide */
	atomic_uint state;	  /* enum thread_buffer_state; claimed by compare-and-swap */

	/* The writer's. */
	uint64_t read_pos;
	uint32_t known_thread_id; /* whose THREAD row was written */
	bool is_budgeted;	  /* it had a thread; whoever claims it sets this */
	bool is_unbacked;	  /* its ring is plain memory, not in the crash buffer */
	bool definitions_lost;	  /* there was no memory for rows: ask for new definitions */
	char first_name[16];	  /* of the thread, when it claimed the thread buffer */
	bool owner_exited;
	uint32_t slots_changed; /* slot_stack_id before this one differs from the one in the ring */
	uint32_t slots_used;	/* those from here on never had an id */
	uint32_t slot_stack_id[XT_STACK_SLOT_COUNT];   /* as of read_pos */
	uint32_t slot_module_id[XT_MODULE_SLOT_COUNT]; /* likewise */
	bool modules_changed;			       /* slot_module_id differs from the ring's */
};

_Static_assert(offsetof(struct thread_buffer, cache) == 64,
	       "what a call needs of a lane is one line");

/* The calling thread's thread buffer, or NULL. */
extern _Thread_local struct thread_buffer *current_thread_buffer
	__attribute__((tls_model("initial-exec")));

#define THREAD_BUFFER_IDLE 1 /* (0 is what a child reads of its parent's) */

/*
 * The thread buffer is not idle: has a signal handler jumped out of what was within it, by siglongjmp()? It has if that stood on
 * the stack where the frames from the caller up to regs stand now, as a loop that goes on calling comes by there. An
 * NVTX call stands farther up than the calls of CUDA that come after it: it was left if its frame was overwritten. Then
 * the thread buffer is made whole, and true. Where that cannot be told, false.
 */
__attribute__((cold)) bool thread_buffer_recover_from_jump(struct thread_buffer *tb,
							   const struct caller_regs *regs);

/*
 * The owner is about to work with its thread buffer; false: it does so already, and this is a signal handler in the middle of
 * that. The fences are for the compiler: a handler finds the thread buffer as it is between two calls, or not idle.
 */
static inline bool thread_buffer_enter(struct thread_buffer *tb, const struct caller_regs *regs)
{
	if (__builtin_expect(tb->within != THREAD_BUFFER_IDLE, 0) &&
	    !thread_buffer_recover_from_jump(tb, regs))
		return false;
	tb->within = (uintptr_t)regs;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

static inline void thread_buffer_leave(struct thread_buffer *tb)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	tb->within = THREAD_BUFFER_IDLE;
}

/* Claims a thread buffer for the calling thread: a free one or a new one. NULL if none can be had. Cold
 * path: makes system calls, takes no lock, calls no malloc. */
struct thread_buffer *thread_buffer_claim(void);

/* The writer begins: it alone takes thread buffers back from now on. */
void thread_buffers_set_writer(void);

/* Has the thread that has it ended? */
bool thread_buffer_is_orphaned(const struct thread_buffer *tb);

/* In a forked child: forgets all thread buffers, which are of threads that it does not have. */
void thread_buffers_abandon(void);

/* Creates a free thread buffer ahead of need. False if there is no memory or no room for more. */
bool thread_buffer_create_spare(void);

/* For the writer: thread buffers [0, thread_buffer_count()); an entry may be NULL for a moment. */
uint32_t thread_buffer_count(void);
struct thread_buffer *thread_buffer_at(uint32_t index);

/*
 * While the log cannot be written, rings stay full, and threads do not wait for room in them.
 * Rings of ended threads keep their events, so only THREAD_BUFFERS_STALLED more rings are made. Calls that
 * find none are counted. Writer thread.
 */
#define THREAD_BUFFERS_STALLED 256
void thread_buffers_stall(bool is_stalled);

/* Calls that found no thread buffer. */
extern atomic_uint_fast64_t thread_buffer_calls_missed;

/* The writer: how many bytes of the ring wait for a flush; and makes it wider, if the budget allows. */
uint32_t thread_buffer_used_bytes(const struct thread_buffer *tb);
void thread_buffer_widen(struct thread_buffer *tb);

/* The writer: what a thread buffer without a thread has grown to is given back. */
void thread_buffer_shrink(struct thread_buffer *tb);

/* One writer; relaxed so that a reader sees whole values. */
static inline void thread_buffer_add(uint64_t *sum, uint64_t value)
{
	__atomic_store_n(sum, *sum + value, __ATOMIC_RELAXED);
}

static inline void thread_buffer_count_up(struct thread_buffer *tb, enum xt_ring_counter counter)
{
	thread_buffer_add(&tb->ring->counters[counter], 1);
}

#endif
