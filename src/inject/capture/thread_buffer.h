/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread buffer: the tracer's state of one program thread. It has the thread's ring in the crash
 * buffer, its stack cache, and the memory of its walks. A thread claims one at its first recorded
 * call. Once the thread has ended and its events are in the log file, the writer makes it available
 * to the next thread.
 *
 * A ring starts with a small window, to use few pages and little cache. The thread wraps at the end
 * of the window, with the padding also used at the end of the ring. If the window fills faster than
 * the writer drains it, the writer widens it.
 *
 * Ring protocol: only the thread advances write_pos (release, ring_commit()), only the writer
 * advances free_pos (release, ring_free()). Each reads the other's with acquire.
 */
#ifndef XT_INJECT_THREAD_BUFFER_H
#define XT_INJECT_THREAD_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/capture/stack_cache.h"
#include "inject/capture/stack_modules.h"
#include "inject/capture/torch_thread.h"
#include "inject/runtime/hot_state.h"
#include "xtrace/crash_buffer_format.h"

#define THREAD_BUFFER_TEXT_BYTES  4096
#define THREAD_BUFFERS_MAX	  4096
#define RING_DATA_BYTES		  (256u << 10)
#define RING_FIRST_BYTES	  (64u << 10) /* initial window */
#define RING_TOUCHED_BYTES	  (8u << 10) /* faulted in by a thread that creates its own buffer */
#define THREAD_BUFFER_STACK_BYTES (64u << 10) /* for walks; uses pages as needed */
#define THREAD_BUFFERS_SPARE	  4	      /* free buffers that the writer maintains */

#define THREAD_BUFFER_PAYLOAD_BYTES 2048

/* A graph node that is being created. CUPTI reports its type only at this point. */
#define THREAD_BUFFER_STARTING_NODES 32
struct starting_node {
	const void *node;
	uint64_t order; /* 0: free */
	uint32_t type;
};

/*
 * 0 is no state: a child forked behind the C library's back reads zeros, and must not use the
 * buffer.
 */
enum thread_buffer_state {
	THREAD_BUFFER_FREE = 1,
	THREAD_BUFFER_CLAIMED = 2,
	THREAD_BUFFER_INHERITED = 3 /* temporary: inherit_thread_buffer() */
};

/*
 * Without a writer, which would free them, this many buffers of ended threads are kept with their
 * events. Beyond that, a new thread takes over such a buffer.
 */
#define THREAD_BUFFERS_KEPT 16

struct thread_buffer {
	/* Fields of the owner. Each call uses the first two cache lines. */
	struct xt_ring_header *ring;
	uint8_t *data;
	uint64_t write_pos;
	uint64_t free_pos_seen; /* free_pos as last read: a lower bound */
	uint64_t slow_path_ns;	/* total time of walks and waits */
	uint32_t window;	/* bytes of data[] in use; the rest has no pages yet */
	int32_t hits_to_audit;	/* stack cache hits up to the next audit; 0: none yet */
	uint32_t cache_epoch;
	atomic_uint cache_epoch_wanted; /* the writer asks to redefine all slots */
	uintptr_t
		within; /* THREAD_BUFFER_IDLE, or the frame that thread_buffer_enter() was called in */
	struct stack_cache cache __attribute__((aligned(64))); /* hot fields first */
	uint64_t backoff_pos; /* free_pos + 1 at the last timeout; 0: none */
	uint64_t timed_ns;    /* time of timed calls, without slow_path_ns */
	uint64_t timed_count;
	uint64_t unsampled_count; /* calls without a stack, by sampling */
	uint64_t event_return;	  /* return address of the NVTX call in progress, or 0 */
	uint32_t rng_state;	  /* sampling.h */
	void *walk_stack_top;	  /* for call_on_stack() */
	struct stack_modules modules;
	struct torch_thread torch;
	struct stack_walk walk;
	struct python_walk python;
	char text[THREAD_BUFFER_TEXT_BYTES]; /* of the event being committed */

	uint8_t payload[THREAD_BUFFER_PAYLOAD_BYTES]; /* of the same event; see nvtx_events.c */

	struct starting_node starting[THREAD_BUFFER_STARTING_NODES]; /* nested node creations */
	struct starting_node made;				     /* the last one created */
	uint64_t starting_count;
	uint64_t made_id; /* id of the last node */
	/* graph_nodes.c: the call in progress instantiates a graph, and what it holds */
	bool is_instantiating;
	uint8_t call_hold; /* skipped_calls.h: what the call in progress holds */
	uint8_t instantiation_hold, instantiation_epoch;

	/* Shared fields. */
	atomic_uint window_ready; /* written by the writer: allowed window size */
	atomic_uint state;	  /* enum thread_buffer_state; claim by compare-and-swap */

	/* Fields of the writer. */
	uint64_t read_pos;
	uint64_t seen_pos;	  /* end of the ring at the start of the round, if runs_nodes */
	uint64_t was_drained;	  /* recorder.rounds of the last drain */
	bool runs_nodes;	  /* the thread runs nodes of PyTorch's autograd */
	uint32_t known_thread_id; /* of the last THREAD row written */
	bool is_budgeted;	  /* charged to the budget; set at the first claim */
	bool is_unbacked;	  /* the ring is plain memory, not in the crash buffer */
	bool definitions_lost;	  /* rows were lost for lack of memory: ask for new definitions */
	char first_name[16];	  /* the thread's name when it claimed the buffer */
	bool owner_exited;
	uint32_t slots_changed; /* slots below this differ from the ring's slot_stack_id */
	uint32_t slots_used;	/* slots from here on never had an id */
	uint32_t slot_stack_id[XT_STACK_SLOT_COUNT];   /* as of read_pos */
	uint32_t slot_module_id[XT_MODULE_SLOT_COUNT]; /* as of read_pos */
	bool modules_changed;			       /* slot_module_id differs from the ring's */
	uint32_t slot_autograd_id[XT_AUTOGRAD_SLOT_COUNT]; /* as of read_pos */
	bool autograd_changed; /* slot_autograd_id differs from the ring's */
	/* End of the thread's last call since an allocation failed; 0: none did. */
	uint64_t failed_alloc_ns;
	uint32_t failed_alloc_api;
};

_Static_assert(offsetof(struct thread_buffer, cache) == 64,
	       "what a call needs of a thread buffer is one line");

/* The calling thread's thread buffer, or NULL. */
extern _Thread_local struct thread_buffer *current_thread_buffer
	__attribute__((tls_model("initial-exec")));

#define THREAD_BUFFER_IDLE 1 /* not 0, which a forked child reads */

/*
 * Checks a buffer that is not idle: did a signal handler leave the tracer by siglongjmp()? It did
 * if the interrupted frame was on a part of the stack that current frames now occupy. An NVTX call
 * is higher up than later CUDA calls; it was left if its return address was overwritten. If so,
 * repairs the buffer and returns true. Returns false if it cannot be known.
 */
__attribute__((cold)) bool thread_buffer_recover_from_jump(struct thread_buffer *tb,
							   const struct caller_regs *regs);

/*
 * Marks the buffer as in use by its owner. False if it is already: then this is a signal handler
 * that interrupted the tracer. The fences order accesses for the compiler, so that a handler finds
 * the buffer consistent or in use.
 */
static inline bool thread_buffer_enter(struct thread_buffer *tb, const struct caller_regs *regs)
{
	if (__builtin_expect(tb->within != THREAD_BUFFER_IDLE, 0) &&
	    !thread_buffer_recover_from_jump(tb, regs))
		return false;
	__atomic_store_n(&tb->within, (uintptr_t)regs, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

/* Pairs with the acquire in thread_buffers_await_work(). */
static inline void thread_buffer_leave(struct thread_buffer *tb)
{
	__atomic_store_n(&tb->within, THREAD_BUFFER_IDLE, __ATOMIC_RELEASE);
}

/*
 * Claims a free or new buffer for the calling thread. NULL if there is none. Cold path: makes
 * system calls; no lock, no malloc.
 */
struct thread_buffer *thread_buffer_claim(void);

/* The writer has started: from now on only it frees buffers. */
void thread_buffers_set_writer(void);

/* Whether the buffer's thread has ended. */
bool thread_buffer_is_orphaned(const struct thread_buffer *tb);

/* In a forked child: forgets all buffers of the parent's threads. */
void thread_buffers_abandon(void);

/* Creates a free buffer. False if out of memory or at the limit. */
bool thread_buffer_create_spare(void);

/* Writer: buffers [0, thread_buffer_count()). An entry may be NULL briefly. */
uint32_t thread_buffer_count(void);
struct thread_buffer *thread_buffer_at(uint32_t index);

/*
 * While the log cannot be written, rings stay full and threads do not wait. Rings of ended threads
 * keep their events, so only THREAD_BUFFERS_STALLED more rings are created. Calls without a ring
 * are counted. Writer thread.
 */
#define THREAD_BUFFERS_STALLED 256
void thread_buffers_stall(bool is_stalled);

/*
 * Waits until all calls have ended that make GPU work and are recorded. Recording must have been
 * paused a millisecond ago, so that no other begins. False after the deadline. Any thread.
 */
bool thread_buffers_await_work(uint64_t deadline_ns);

/* Calls lost because their thread got no buffer. */
extern atomic_uint_fast64_t thread_buffer_calls_missed;

/* Writer: bytes of the ring that wait for a flush. Widens the window if the budget allows. */
uint32_t thread_buffer_used_bytes(const struct thread_buffer *tb);
void thread_buffer_widen(struct thread_buffer *tb);

/* Writer: shrinks the stack cache of a buffer without a thread. The ring keeps its window. */
void thread_buffer_shrink(struct thread_buffer *tb);

static inline void thread_buffer_count_up(struct thread_buffer *tb, enum xt_ring_counter counter)
{
	counter_add(&tb->ring->counters[counter], 1);
}

static inline void thread_buffer_count_lost(struct thread_buffer *tb, enum xt_ring_counter counter)
{
	counter_add_lost(&tb->ring->counters[counter], 1);
}

#endif
