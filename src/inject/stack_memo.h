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
#define MEMO_ARENA_BYTES (8u << 20) /* touched only as far as it is used */

struct memo_entry {
	const void *base;	  /* the struct caller_regs of the walk */
	struct memo_entry *chain; /* next with the same bucket */
	struct memo_variant *variants;
	uint32_t input_count;
	/* input_count values, then input_count offsets from base in words (uint16_t) */
	uint64_t values[];
};

struct memo_variant {
	struct memo_entry *entry;  /* NULL: it was dropped */
	struct memo_variant *next; /* of the same entry */
	struct memo_variant *next_hit;
	uint64_t frames_hash;	/* of both walks */
	uintptr_t python_state; /* whose frames these are; 0: nobody's */
	uint32_t slot;
	uint32_t step_count;
	uint32_t input_count;
	uint32_t run_count;
	uint32_t copy_count;
	/* step_count steps, then input_count struct python_input, then run_count struct python_run,
	 * then copy_count words */
	struct python_step steps[];
};

struct stack_memo {
	uint64_t generation; /* of the loader; entries are void when it moves on */
	struct memo_variant *last;
	struct memo_entry *buckets[1 << MEMO_BUCKET_BITS];
	uint32_t slot_count; /* handed out: 1 … slot_count */
	uint32_t arena_used;
	uint64_t clears;
	uint8_t *arena; /* MEMO_ARENA_BYTES, zero or not */
};

/* The variant whose inputs are the present ones, or NULL. python_state is the thread's in that
 * interpreter, 0 if it has none. */
struct memo_variant *stack_memo_find(struct stack_memo *memo, const struct caller_regs *regs,
				     const struct python_runtime *python, uintptr_t python_state,
				     uint64_t generation);

/*
 * Keeps a walk of both stacks under a slot of its own, making room by forgetting everything if
 * need be. NULL if it cannot be kept (inputs incomplete, below or too far above the callback).
 * generation is the loader's from before the walk.
 */
struct memo_variant *stack_memo_add(struct stack_memo *memo, const struct caller_regs *regs,
				    const struct stack_walk *walk, uintptr_t python_state,
				    const struct python_walk *python, uint64_t generation);

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

#endif
