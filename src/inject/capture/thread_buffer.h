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
#include "inject/python/python_walk.h"
#include "inject/runtime/hot_state.h"
#include "inject/torch/torch_runtime.h"
#include "inject/unwind/stack_walk.h"
#include "xtrace/crash_buffer_format.h"

#define THREAD_BUFFER_TEXT_BYTES 4096
#define THREAD_BUFFERS_MAX	 4096
#define RING_DATA_BYTES		 (256u << 10)
#define RING_FIRST_BYTES	 (64u << 10) /* initial window */
#define THREAD_BUFFERS_SPARE	 4	     /* free buffers that the writer maintains */

#define THREAD_BUFFER_PAYLOAD_BYTES 2048

#define MODULE_SLOTS_HASHED (2 * XT_MODULE_SLOT_COUNT)
#define MODULES_RECENT_BITS 6

/*
 * Caches modules by address while nothing is loaded: the loader increments its count before it runs
 * a library's code. `end` and `name` matter if that count is only polled.
 */
struct recent_module {
	uintptr_t start, end;
	const char *name;
	uint64_t generation;
	uint16_t slot;
};

/*
 * The module of each frame of a stack, at the time of the walk.
 *
 * A plugin may be unloaded and replaced at the same addresses a moment later. Only while a frame is
 * on the stack is its module certain to stay loaded. So the thread identifies the modules itself,
 * once per new stack. A stack record refers to modules by slots of its ring; a slot is defined by
 * its own record at first use.
 */
struct stack_modules {
	uint64_t identities[XT_MODULE_SLOT_COUNT]; /* by slot: hash of address and contents */
	uint16_t slots[MODULE_SLOTS_HASHED];	   /* hash table of identities; 0: free */
	uint32_t slot_count;			   /* slots 1 to slot_count are defined */
	struct recent_module recent[1 << MODULES_RECENT_BITS]; /* by hash of the start address */
};

#define TORCH_TASKS_RECENT 8

/* A call of backward() that the thread works for. */
struct torch_task {
	int64_t id;	   /* PyTorch's graph task */
	uint32_t number;   /* equal for equal callers; 0: the caller is not known yet */
	uint32_t attempts; /* searches for the caller that found none */
};

/* A distinct caller of backward(): its thread, and its Python frames. */
struct torch_caller {
	uint32_t thread;   /* XT_THREAD_ID; 0: unknown, or another thread may be the caller */
	uint32_t failures; /* failed attempts to define its frames */
	uintptr_t state;   /* of Python */
	uint64_t hash;	   /* of its frames from run_backward() outward */
};
#define TORCH_CALLERS_MAX 63

/* Where a state was found the last time. */
struct torch_recent {
	struct torch_node_key key; /* without its caller */
	uint64_t task;		   /* torch_task_of(); 0: the entry is free */
	uint32_t slot;
};
#define TORCH_RECENT_BITS 8

/*
 * A thread's autograd state: slots defined so far, and callers of backward(). Used by the thread,
 * except the fields that other threads read.
 */
struct torch_thread {
	/* Each call reads these. */
	bool is_ready;
	uint64_t last_node_sequence;
	uint64_t thread;				    /* PyTorch's number of this thread */
	struct torch_recent outside;			    /* while no node runs */
	struct torch_recent recent[1 << TORCH_RECENT_BITS]; /* see torch_recent_place() */

	uint32_t slot_count;
	struct torch_node_key keys[XT_AUTOGRAD_SLOT_COUNT];
	struct torch_node_names names; /* of the slot being defined */
	struct python_chain chain;     /* of the thread being looked at */
	struct torch_task tasks[TORCH_TASKS_RECENT];
	uint32_t task_next;				    /* index in tasks to replace next */
	struct torch_caller callers[TORCH_CALLERS_MAX + 1]; /* by number, from 1 */
	uint32_t caller_count, caller_last; /* caller_last: of the previous task; 0: none */
	uint64_t cold_begin_ns;		    /* of the first search */
	uint64_t search_ns, definition_ns;  /* total time of searches, and of definitions */

	/* Read by other threads: what they need to find the caller of backward(). 0: unknown. */
	_Atomic uint64_t shared_thread;
	atomic_uintptr_t python_state;
};

/* The largest of PyTorch's numbers of threads whose calls were seen. */
extern atomic_uint_fast64_t torch_threads_seen;

/* A graph task as it is stored; -1: none is known. */
static inline uint64_t torch_task_of(int64_t task_id)
{
	return (uint64_t)(task_id + 2);
}

/*
 * The place of a node's state: two entries, the one with an even index first. Types are at regular
 * distances, which one multiplication would map to few places.
 */
static inline struct torch_recent *
torch_recent_place(struct torch_thread *torch, const struct torch_node_key *key, uint64_t task)
{
	uint64_t hash = (key->type ^ key->python_type << 24 ^ key->thread << 48 ^ task << 40) *
			UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return &torch->recent[hash >> (65 - TORCH_RECENT_BITS) << 1];
}

static inline bool torch_is_recent(const struct torch_recent *recent,
				   const struct torch_node_key *key, uint64_t task)
{
	return recent->key.type == key->type && recent->task == task &&
	       recent->key.thread == key->thread && recent->key.python_type == key->python_type;
}

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
	uintptr_t within; /* THREAD_BUFFER_IDLE, or the regs that thread_buffer_enter() got */
	struct stack_cache cache __attribute__((aligned(64))); /* hot fields first */
	uint64_t backoff_pos; /* free_pos + 1 at the last timeout; 0: none */
	uint64_t timed_ns;    /* time of timed calls, without slow_path_ns */
	uint64_t timed_count;
	uint64_t event_return; /* return address of the NVTX call in progress, or 0 */
	void *walk_stack_top;  /* for call_on_stack() */
	struct stack_modules modules;
	struct torch_thread torch;
	struct stack_walk walk;
	struct python_walk python;
	char text[THREAD_BUFFER_TEXT_BYTES]; /* of the event being committed */

	uint8_t payload[THREAD_BUFFER_PAYLOAD_BYTES]; /* of the same event; see nvtx.c */

	struct starting_node starting[THREAD_BUFFER_STARTING_NODES]; /* nested node creations */
	struct starting_node made;				     /* the last one created */
	uint64_t starting_count;
	uint64_t made_id; /* id of the last node */
	/* graph_nodes.c: the call in progress instantiates a graph, and what it holds */
	bool is_instantiating;
	uint8_t call_hold; /* callbacks.c: what the call in progress holds */
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

/* The first buffer from *index on, or NULL. Moves *index behind it. */
struct thread_buffer *thread_buffer_next(uint32_t *index);

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

/*
 * Defines slots for all modules of the thread buffer's walk and stores them in walk_module.slot.
 * `generation`: the loader's, from before the walk. False if the ring has no room for a definition.
 * Owner, on the cold path: no lock, no malloc. If headers are not at the module start, takes the
 * loader's list lock briefly.
 */
bool stack_modules_define(struct thread_buffer *tb, uint64_t generation);

/* Forgets all slots. */
void stack_modules_clear(struct stack_modules *modules);

/* Forgets where states were found. */
void torch_thread_forget(struct torch_thread *torch);

/* Forgets all slots, because the writer or the stack cache forgot what they refer to. */
void torch_thread_clear(struct torch_thread *torch);

#endif
