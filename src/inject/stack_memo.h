/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verified memo: which call stack is this, without walking it.
 *
 * A walk is a function of its inputs (stack_walk.h). A memo entry keeps the inputs of one walk; a
 * launch whose callback was entered with the same stack pointer compares them, in the order in
 * which the walk read them. If all are equal, the stack is the same and its slot is known. The
 * comparison reads only what the walk itself would read: up to the first difference the walk
 * would have gone the same way. So it is as safe as walking.
 *
 * Where Python runs, a native stack stands for many lines of it: an entry has variants, each with
 * the inputs of one walk of Python's frames (python_walk.h) and a slot of its own. Without Python
 * there is one variant, which has no inputs.
 *
 * There may be thousands of variants. They hang in a tree that goes along the frames, from the innermost
 * outwards; a node is divided by the next frame as soon as it has more variants than are soon compared.
 * A frame is looked at only where those further in are of a node, that is, of a walk: so this is as safe
 * as comparing a variant is. All nodes are in one table of hashes.
 *
 * Launch sequences repeat, so each variant remembers which one was hit after it: in a steady loop
 * the first guess is right.
 *
 * One memo per thread, used by that thread alone. stack_memo_find() is hot path.
 */
#ifndef XT_INJECT_STACK_MEMO_H
#define XT_INJECT_STACK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/python_walk.h"
#include "inject/stack_walk.h"

#define MEMO_BUCKET_BITS 9
#define MEMO_NODE_BITS	 13
#define MEMO_NODE_MANY	 4	     /* variants from which on a node is divided */
#define MEMO_ARENA_BYTES (24u << 20) /* touched only as far as it is used */
#define MEMO_OWN_BYTES	 (96u << 10) /* of it, for which the budget is not asked */
#define MEMO_STEP_BYTES	 (64u << 10) /* as much more it is asked for */

/* Variants of one entry that have the innermost frames in common. */
struct memo_node {
	const struct memo_entry *entry;
	struct memo_node *chain; /* next with the same bucket */
	uint64_t key;		 /* of these frames; 0: of none */
	struct memo_variant *variants;
	uint32_t frame_count;
	uint32_t variant_count;
	bool is_divided; /* its variants are in nodes with a frame more */
};

struct memo_entry {
	const void *base;	     /* the struct caller_regs of the walk; NULL: it was dropped */
	struct memo_entry *chain;    /* next with the same bucket */
	struct memo_variant *native; /* the one without Python */
	struct memo_node root;
	uint32_t input_count;
	uint32_t python_stack_bytes; /* the stack_bytes of its walk */
	/* input_count values, then input_count offsets from base in words (uint16_t) */
	uint64_t values[];
};

struct memo_variant {
	struct memo_entry *entry;
	struct memo_variant *next; /* of the same node */
	struct memo_variant *next_hit;
	uint64_t frames_hash;	     /* of both walks */
	struct python_thread thread; /* whose frames these are */
	uint32_t slot;
	uint32_t entry_bytes; /* of its entry with the inputs */
	uint32_t step_count;
	uint32_t input_count;
	uint32_t run_count;
	uint32_t copy_count;
	/* step_count steps, then input_count struct python_input, then run_count struct python_run,
	 * then copy_count words */
	struct python_step steps[];
};

struct stack_memo {
	/* What a hit reads stands first. */
	uint64_t generation; /* of the loader; entries are void when it moves on */
	struct memo_variant *last;
	uint64_t clears;
	uint8_t *arena; /* MEMO_ARENA_BYTES, zero or not */
	uint32_t arena_used;
	uint32_t arena_bytes;	  /* that may be used */
	uint32_t slot_count;	  /* handed out: 1 … slot_count */
	struct memo_node **nodes; /* 1 << MEMO_NODE_BITS, in the arena; NULL: no node is divided */
	struct memo_entry *buckets[1 << MEMO_BUCKET_BITS];
};

/* The variant whose inputs are the present ones, or NULL. Enters the thread, where it has a state. */
struct memo_variant *stack_memo_find(struct stack_memo *memo, const struct caller_regs *regs,
				     const struct python_runtime *python,
				     struct python_thread *thread, uint64_t generation);

/*
 * Between two launches a program works on much memory of its own, and what the next comparison reads has
 * left the nearest caches. So it is asked for ahead, in two steps, none of which waits: with the hit the
 * head of the variant that is expected next; when the call returns, what that one is compared by.
 */
static inline void stack_memo_expect(const struct stack_memo *memo)
{
	if (memo->last)
		__builtin_prefetch(memo->last->next_hit);
}

void stack_memo_fetch_expected(const struct stack_memo *memo);

/*
 * Keeps a walk of both stacks under a slot of its own, making room by forgetting everything if
 * need be. NULL if it cannot be kept (inputs incomplete, below or too far above the callback).
 * generation is the loader's from before the walk.
 */
struct memo_variant *stack_memo_add(struct stack_memo *memo, const struct caller_regs *regs,
				    const struct stack_walk *walk, const struct python_walk *python,
				    uint64_t generation);

/* What two walks of one moment are known by in an audit. */
static inline uint64_t stack_memo_hash(const struct stack_walk *walk,
				       const struct python_walk *python)
{
	return walk->frames_hash ^ python->hash * UINT64_C(0x9e3779b97f4a7c15);
}

/* Takes the variant out with all that share its native stack, so that they are not found again. */
void stack_memo_drop(struct stack_memo *memo, struct memo_variant *variant);

/* Forgets everything; slots are handed out anew. */
void stack_memo_clear(struct stack_memo *memo);

/* What the memo may have of its arena; what it had more is the budget's again. Not while its thread runs. */
void stack_memo_begin(struct stack_memo *memo);

#endif
