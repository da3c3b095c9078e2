/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verified stack cache: which call stack is this, without walking it.
 *
 * A walk is a function of its inputs (stack_walk.h). A stack cache entry keeps the inputs of one walk; a
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
 * Between two launches a program has the caches to itself. So what a hit reads is little and lies together: the
 * head of the stack cache, a variant with what it is compared by, an entry likewise.
 *
 * One stack cache per thread, used by that thread alone. stack_cache_find() is hot path.
 */
#ifndef XT_INJECT_STACK_CACHE_H
#define XT_INJECT_STACK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/python/python_walk.h"
#include "inject/unwind/stack_walk.h"

#define CACHE_BUCKET_BITS 9
#define CACHE_NODE_BITS	  13
#define CACHE_NODE_MANY	  4	      /* variants from which on a node is divided */
#define CACHE_ARENA_BYTES (24u << 20) /* touched only as far as it is used */
#define CACHE_OWN_BYTES	  (96u << 10) /* of it, for which the budget is not asked */
#define CACHE_STEP_BYTES  (64u << 10) /* as much more it is asked for */

#define CACHE_LINE_BYTES  64
#define CACHE_INPUT_BYTES (sizeof(uint64_t) + sizeof(uint16_t)) /* of an entry */

/* What lies in the arena, one behind the other. */
enum cache_kind {
	CACHE_ENTRY,
	CACHE_VARIANT,
	CACHE_NODE,
	CACHE_NODE_TABLE,
};

struct cache_object {
	uint32_t bytes; /* all of it, a multiple of a line of the cache */
	uint8_t kind;	/* enum cache_kind */
	bool is_used;	/* a variant that was hit, of late; while room is made: what is kept */
	uint16_t input_count;
};

/* Variants of one entry that have the innermost frames in common. */
struct cache_node {
	struct cache_object object;
	const struct cache_entry *entry;
	struct cache_node *chain; /* next with the same bucket */
	uint64_t key;		  /* of these frames; 0: of none */
	struct cache_variant *variants;
	uint32_t frame_count;
	uint32_t variant_count;
	bool is_divided; /* its variants are in nodes with a frame more */
};

struct cache_entry {
	struct cache_object object;
	const void *base;	      /* the struct caller_regs of the walk; NULL: it was dropped */
	struct cache_entry *chain;    /* next with the same bucket */
	struct cache_variant *native; /* the one without Python */
	uint32_t python_stack_bytes;  /* the stack_bytes of its walk */
	/* input_count values, then as many offsets from base in words (uint16_t); the last line is
	 * the struct cache_node of all variants with Python */
	uint64_t values[];
};

/* One line of the cache, and what it is compared by behind it: all that a hit reads. */
struct cache_variant {
	struct cache_object object;
	struct cache_entry *entry;
	struct cache_variant *next_hit;
	uintptr_t state; /* whose frames these are; 0: there are none */
	uint64_t interpreter;
	uintptr_t first_frame;	    /* where they began, the last time */
	struct cache_variant *next; /* of the same node */
	uint16_t slot;
	uint16_t step_count;
	uint16_t run_count;
	uint16_t entry_inputs; /* as its entry says, which is farther away */
	/* step_count steps, then a hash of both walks, then input_count struct python_input, then run_count
	 * struct python_run, then the words that these are compared with */
	struct python_step steps[];
};
_Static_assert(sizeof(struct cache_variant) == 64, "the head of a variant is a line of the cache");

struct stack_cache {
	/* What a hit reads stands first. */
	uint64_t generation;		/* of the loader; entries are void when it moves on */
	struct cache_variant *expected; /* what was hit after the last hit, the last time */
	struct cache_variant *last;
	uint64_t epoch; /* moves on when slots may have come to mean other stacks */
	uint8_t *arena; /* CACHE_ARENA_BYTES, zero or not */
	uint32_t arena_used;
	uint32_t arena_bytes; /* that may be used */
	uint32_t slot_count;  /* that are in use */
	uint32_t slot_next;   /* one at least of those from here on is free, if any is */
	struct cache_node *
		*nodes; /* 1 << CACHE_NODE_BITS, in the arena; NULL: no node is divided */
	uint64_t slots_used[XT_STACK_SLOT_COUNT / 64]; /* a bit each */
	struct cache_entry *buckets[1 << CACHE_BUCKET_BITS];
};

/* The variant whose inputs are the present ones, or NULL. Enters the thread, where it has a state. */
struct cache_variant *stack_cache_find(struct stack_cache *cache, const struct caller_regs *regs,
				       const struct python_runtime *python,
				       struct python_thread *thread, uint64_t generation);

/*
 * Between two launches a program works on much memory of its own, and what the next comparison reads has
 * left the nearest caches. So it is asked for ahead, in two steps, none of which waits: with the hit the
 * head of the variant that is expected next; when the call returns, what that one is compared by.
 */
static inline void stack_cache_expect(const struct stack_cache *cache)
{
	__builtin_prefetch(cache->expected);
}

void stack_cache_fetch_expected(const struct stack_cache *cache);

/*
 * Keeps a walk of both stacks under a slot of its own, making room by forgetting others if need be (stack_cache_room.c).
 * NULL if it cannot be kept (inputs incomplete, below or too far above the callback).
 * generation is the loader's from before the walk.
 */
struct cache_variant *stack_cache_add(struct stack_cache *cache, const struct caller_regs *regs,
				      const struct stack_walk *walk,
				      const struct python_walk *python, uint64_t generation);

/* What two walks of one moment are known by in an audit. */
static inline uint64_t stack_cache_hash(const struct stack_walk *walk,
					const struct python_walk *python)
{
	return walk->frames_hash ^ python->hash * UINT64_C(0x9e3779b97f4a7c15);
}

/* The same of the walks that the variant is of. */
uint64_t stack_cache_variant_hash(const struct cache_variant *variant);

/* Takes the variant out with all that share its native stack, so that they are not found again. */
void stack_cache_drop(struct stack_cache *cache, struct cache_variant *variant);

/* What the stack cache may have of its arena; what it had more is the budget's again. Not while its thread runs. */
void stack_cache_begin(struct stack_cache *cache);

#endif
