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
 * Launch sequences repeat, so each entry remembers which one was hit after it: in a steady loop
 * the first guess is right.
 *
 * One memo per thread, used by that thread alone. stack_memo_find() is hot path.
 */
#ifndef XT_INJECT_STACK_MEMO_H
#define XT_INJECT_STACK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/stack_walk.h"

#define MEMO_BUCKET_BITS 9
#define MEMO_ARENA_BYTES (2u << 20) /* touched only as far as it is used */

struct memo_entry {
	const void *base; /* the struct caller_regs of the walk */
	uint64_t frames_hash;
	struct memo_entry *chain; /* next with the same bucket */
	struct memo_entry *next_hit;
	uint32_t slot;
	uint32_t input_count;
	/* input_count values, then input_count offsets from base in words (uint16_t) */
	uint64_t values[];
};

struct stack_memo {
	uint64_t generation; /* of the loader; entries are void when it moves on */
	struct memo_entry *last;
	struct memo_entry *buckets[1 << MEMO_BUCKET_BITS];
	uint32_t slot_count; /* handed out: 1 … slot_count */
	uint32_t arena_used;
	uint64_t clears;
	uint8_t *arena; /* MEMO_ARENA_BYTES, zero or not */
};

/* The entry whose inputs are the present ones, or NULL. */
struct memo_entry *stack_memo_find(struct stack_memo *memo, const struct caller_regs *regs,
				   uint64_t generation);

/*
 * Keeps a walk under a slot of its own, making room by forgetting everything if need be. NULL if
 * it cannot be kept (inputs incomplete, below or too far above the callback). generation is the
 * loader's from before the walk.
 */
struct memo_entry *stack_memo_add(struct stack_memo *memo, const struct caller_regs *regs,
				  const struct stack_walk *walk, uint64_t generation);

/* Takes the entry out, so that it is not found again. */
void stack_memo_drop(struct stack_memo *memo, struct memo_entry *entry);

/* Forgets everything; slots are handed out anew. */
void stack_memo_clear(struct stack_memo *memo);

#endif
