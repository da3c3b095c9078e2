/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins launches of PyTorch's backward pass to launches of the forward pass, by the numbers of
 * autograd nodes. docs/internals/AUTOGRAD.md describes the method.
 *
 * A joined stack is a placeholder for the call path of a backward launch. It lists the stacks that
 * make up the path; naming/joined_paths.c composes it once names are known. Its id follows those of
 * the log's stacks.
 */
#ifndef XT_MERGE_AUTOGRAD_H
#define XT_MERGE_AUTOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/grow.h"
#include "log/base/hash_table.h"

/* More distinct joins are not made; those launches keep their own stacks. */
#define JOINED_STACKS_MAX (1u << 17)

/* Derivatives of derivatives. Deeper launches keep their own stacks, too. */
#define JOIN_DEPTH_MAX 8

/* A state of autograd in a thread, by XT_AUTOGRAD_ID. Texts are XT_STRING_IDs. */
struct autograd_state {
	uint64_t thread;      /* PyTorch's number */
	uint64_t node_thread; /* 0: the node has no sequence number */
	uint32_t node_type;   /* 0: no node runs */
	uint32_t node_class;
	uint32_t caller;       /* XT_THREAD_ID */
	uint32_t caller_stack; /* XT_STACK_ID */
};

/* The stacks that make up the call path of a backward launch. They may be joined stacks, too. */
struct joined_stack {
	uint32_t own;	 /* XT_STACK_ID of the launch itself */
	uint32_t state;	 /* XT_AUTOGRAD_ID */
	uint32_t at;	 /* the first launch after the node was created; 0: unknown */
	uint32_t before; /* the last launch of an earlier node of that thread; 0: unknown */
	uint32_t after;	 /* the first launch of a later node; 0: unknown, or `at` is known */
	bool is_certain; /* no launch between the node and `at` can be missing */
	uint8_t depth;	 /* of joined stacks in these; at most JOIN_DEPTH_MAX */
};

/* Launches of one of PyTorch's threads, by the node created last. */
struct forward_thread;

struct autograd {
	LIST(struct autograd_state) states;
	uint32_t first_joined; /* id of joined[0] */
	LIST(struct joined_stack) joined;
	struct xt_hash_table by_key;
	LIST(struct forward_thread) threads;
	struct xt_hash_table by_thread; /* by PyTorch's number */
	size_t entry_count;		/* of all threads */
	uint64_t left_count; /* backward launches that were not joined, by a limit of the merge */
};

/* The autograd columns of a call or a graph node. */
struct autograd_call {
	uint32_t stack; /* XT_STACK_ID */
	uint32_t state; /* XT_AUTOGRAD_ID; 0: not inside PyTorch */
	uint64_t sequence;
	uint64_t node_sequence;
	bool is_sampled; /* not every call has a stack */
};

void autograd_free(struct autograd *autograd);

/* Adds or replaces a state. */
void autograd_add_state(struct autograd *autograd, uint64_t id, const struct autograd_state *state);

/*
 * Notes a launch and stores its stack in *stack_out: its own, or a joined one. Call it in the
 * order of the log.
 */
void autograd_join(struct autograd *autograd, const struct autograd_call *call,
		   uint32_t *stack_out);

/* Forgets the launches, but not the joined stacks: another order of events begins. */
void autograd_begin_events(struct autograd *autograd);

static inline bool autograd_is_joined(const struct autograd *autograd, uint32_t stack)
{
	return stack >= autograd->first_joined &&
	       stack - autograd->first_joined < autograd->joined.count;
}

/* Accepts any id. */
static inline const struct autograd_state *autograd_state(const struct autograd *autograd,
							  uint32_t id)
{
	static const struct autograd_state none;

	return id < autograd->states.count ? &autograd->states.list[id] : &none;
}

#endif
