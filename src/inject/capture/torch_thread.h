/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's autograd state: slots defined so far, and callers of backward(). Used by the thread,
 * except the fields that other threads read.
 */
#ifndef XT_INJECT_TORCH_THREAD_H
#define XT_INJECT_TORCH_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/python/python_chain.h"
#include "inject/torch/torch_runtime.h"
#include "xtrace/crash_buffer_format.h"

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
	uint32_t failures; /* to define its frames */
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

/* Autograd state of one thread. */
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
	uint32_t task_next;				    /* to replace */
	struct torch_caller callers[TORCH_CALLERS_MAX + 1]; /* by number, from 1 */
	uint32_t caller_count, caller_last; /* caller_last: of the task before; 0: none */
	uint64_t cold_begin_ns;		    /* of the first search */
	uint64_t search_ns, definition_ns;  /* total time of both */

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

/* Forgets where states were found. */
void torch_thread_forget(struct torch_thread *torch);

/* Forgets all slots, because the writer or the stack cache forgot what they refer to. */
void torch_thread_clear(struct torch_thread *torch);

/* A new thread owns the buffer. */
void torch_thread_begin(struct torch_thread *torch);

#endif
