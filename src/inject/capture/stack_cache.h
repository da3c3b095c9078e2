/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack cache: recognises a call stack without unwinding it.
 *
 * Each entry stores the inputs (stack_walk.h) of one native walk. A launch with the same stack
 * pointer compares them, in the order they were read. If all are equal, so is the stack. Comparing
 * reads no page that a walk would not read (lay_out() in stack_cache.c), so it is as safe.
 *
 * A native stack can occur with many Python stacks, the variants of its entry. They form a tree
 * keyed by Python frame, innermost first; a node is split when it has too many variants to compare
 * in turn. Launch sequences repeat, so each variant remembers which one was hit next.
 *
 * One cache per thread, used only by that thread. The last part has the hot path.
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
#define CACHE_ARENA_BYTES (24u << 20) /* address space; touched as it is used */
#define CACHE_OWN_BYTES	  (96u << 10) /* part that is not charged to the budget */
#define CACHE_LINE_BYTES  64

/* Objects in the arena, stored one after another. */
enum cache_kind {
	CACHE_ENTRY,
	CACHE_VARIANT,
	CACHE_NODE,
	CACHE_NODE_TABLE,
};

struct cache_object {
	uint32_t bytes;		 /* total size, a multiple of a cache line */
	uint8_t kind : 7;	 /* enum cache_kind */
	uint8_t has_modules : 1; /* variant: its inputs begin with struct python_called */
	bool is_used; /* variant: hit since the last eviction; during an eviction: kept */
	uint16_t input_count;
};

/* Variants of one entry that share their innermost frames. */
struct cache_node {
	struct cache_object object;
	const struct cache_entry *entry;
	struct cache_node *chain; /* next in the bucket */
	uint64_t key;		  /* hash of these frames; 0: none */
	struct cache_variant *variants;
	uint32_t frame_count;
	uint32_t variant_count;
	bool is_split; /* its variants are in nodes with one more frame */
};

struct cache_entry {
	struct cache_object object;
	const void *base;	      /* the walk's struct caller_regs; NULL: dropped */
	struct cache_entry *chain;    /* next in the bucket */
	struct cache_variant *native; /* the variant without Python frames */
	uint32_t python_stack_bytes;  /* python_walk.stack_bytes of its walk */
	/*
	 * input_count values, then their offsets from base in words (uint16_t), then the ends of
	 * runs (uint16_t). The last cache line is the struct cache_node of all Python variants.
	 */
	uint64_t values[] __attribute__((aligned(16)));
};

#define STACK_IN_TORCH XT_STACK_SLOT_COUNT /* a bit above all slots */

/* One cache line, followed by its inputs: all that a hit reads. */
struct cache_variant {
	struct cache_object object;
	struct cache_entry *entry;
	struct cache_variant *next_hit;
	uintptr_t state; /* owner of the frames; 0: no frames */
	uint64_t interpreter;
	struct cache_variant *next; /* in the same node */
	uint16_t marked_slot;	    /* STACK_IN_TORCH is set if a frame is in PyTorch's libraries */
	uint16_t step_count;
	uint16_t run_count;
	uint16_t entry_lines; /* cache lines to prefetch of the entry, to avoid a miss on it */
	uint64_t own_lines;   /* of steps and inputs */
	/*
	 * step_count steps, then a hash of both walks, input_count struct python_called and struct
	 * python_input, run_count struct python_run, and the words that runs are compared with
	 */
	struct python_step steps[];
};
_Static_assert(sizeof(struct cache_variant) == 64, "the head of a variant is a line of the cache");

struct stack_cache {
	/* Hot fields first. */
	uint64_t generation;		/* of the loader; a new one voids all entries */
	struct cache_variant *expected; /* the hit after `last` the previous time */
	struct cache_variant *last;	/* the latest hit */
	uint64_t epoch;			/* changes when slots may refer to other stacks */
	uint8_t *arena;			/* CACHE_ARENA_BYTES, not necessarily zeroed */
	uint32_t arena_used;
	uint32_t arena_bytes;	   /* usable so far */
	uint32_t slot_count;	   /* in use */
	uint32_t slot_next;	   /* search for a free slot starts here */
	struct cache_node **nodes; /* 1 << CACHE_NODE_BITS, in the arena; NULL: no node is split */
	uint64_t slots_used[XT_STACK_SLOT_COUNT / 64]; /* bit set */
	struct cache_entry *buckets[1 << CACHE_BUCKET_BITS];
};

/*
 * Prefetches what the next comparison reads; the program evicts it between launches. Done in two
 * steps, neither of which waits: at a hit, the head of the expected variant; at the call's return,
 * its inputs.
 */
static inline void stack_cache_expect(const struct stack_cache *cache)
{
	__builtin_prefetch(cache->expected);
}

/* Always inline: gcc would drop calls of a function that only prefetches. */
static inline __attribute__((always_inline)) void fetch_lines(const void *from, uint64_t lines)
{
	const char *line = from;

	for (const char *end = line + lines * CACHE_LINE_BYTES; line < end;
	     line += 4 * CACHE_LINE_BYTES) {
		__builtin_prefetch(line);
		__builtin_prefetch(line + CACHE_LINE_BYTES);
		__builtin_prefetch(line + 2 * CACHE_LINE_BYTES);
		__builtin_prefetch(line + 3 * CACHE_LINE_BYTES);
	}
}

static inline __attribute__((always_inline)) void
stack_cache_fetch_expected(const struct stack_cache *cache)
{
	const struct cache_variant *next = cache->expected;

	if (!next)
		return;
	fetch_lines(next->entry, next->entry_lines);
	fetch_lines(next->steps, next->own_lines);
}

/*
 * Adds a walk of both stacks and assigns a slot; evicts others if needed. `is_in_torch`: a
 * frame is in one of PyTorch's libraries. `generation` is the loader's before the walk. NULL if the
 * walk cannot be cached: inputs are incomplete, below the callback, or too far above it.
 */
struct cache_variant *stack_cache_add(struct stack_cache *cache, const struct caller_regs *regs,
				      const struct stack_walk *walk,
				      const struct python_walk *python, bool is_in_torch,
				      uint64_t generation);

/* A hash that identifies the result of both walks, for audits. */
static inline uint64_t stack_cache_hash(const struct stack_walk *walk,
					const struct python_walk *python)
{
	return walk->frames_hash ^ python->hash * UINT64_C(0x9e3779b97f4a7c15);
}

/* The hash of the walks that the variant stores. */
uint64_t stack_cache_variant_hash(const struct cache_variant *variant);

/* Removes the variant and all others of its native stack. */
void stack_cache_drop(struct stack_cache *cache, struct cache_variant *variant);

/*
 * Resets the cache to CACHE_OWN_BYTES and returns the rest to the budget. Not while its thread
 * runs.
 */
void stack_cache_begin(struct stack_cache *cache);

/* Empties the cache. All slots are free again. */
void stack_cache_clear(struct stack_cache *cache);

/*
 * Compares the present stacks with those in the cache. Runs at every launch in the program's
 * threads: no lock, no malloc, no system call. Inline, because a launch spends most of its time
 * here.
 *
 * A run has a multiple of this many inputs; its last one repeats.
 */
#define INPUTS_AT_ONCE 4

typedef uint64_t two_words __attribute__((vector_size(16), may_alias));

static inline uint16_t *entry_offsets(const struct cache_entry *entry)
{
	return (uint16_t *)&entry->values[entry->object.input_count];
}

/* For each run of inputs, the number of inputs up to its end. */
static inline uint16_t *entry_run_ends(const struct cache_entry *entry)
{
	return entry_offsets(entry) + entry->object.input_count;
}

/* Compares run after run and stops at the first difference: that makes each read safe. */
static inline bool inputs_are_equal(const struct cache_entry *entry, const uint64_t *base)
{
	const uint64_t *v = entry->values;
	const uint16_t *o = entry_offsets(entry);
	const uint16_t *run_end = entry_run_ends(entry);
	const size_t count = entry->object.input_count;
	size_t i = 0;

	do {
		const size_t end = *run_end++;
		two_words difference = {0};

		do {
			two_words first = {base[o[i]], base[o[i + 1]]};
			two_words second = {base[o[i + 2]], base[o[i + 3]]};

			difference |= first ^ *(const two_words *)&v[i];
			difference |= second ^ *(const two_words *)&v[i + 2];
			i += INPUTS_AT_ONCE;
		} while (i != end);
		if (difference[0] | difference[1])
			return false;
	} while (i != count);
	return true;
}

/*
 * Whether the frames of an entered state are those of the variant. Not inline, because it needs
 * most registers.
 */
bool stack_cache_frames_are_equal(struct cache_variant *variant,
				  const struct python_runtime *python,
				  const struct python_thread *thread);

/*
 * Enters the Python state whose frames are compared next. No state is read before the native stack
 * shows that the thread may run in it.
 */
static inline bool enter_python(const struct cache_entry *entry,
				const struct python_runtime *python, struct python_thread *thread)
{
	return thread->state && entry->python_stack_bytes &&
	       python_enter(python, entry->base, entry->python_stack_bytes, thread);
}

/* The expected variant, if its native stack equals the present one, or NULL. */
static inline struct cache_variant *stack_cache_expected(const struct stack_cache *cache,
							 const struct caller_regs *regs,
							 uint64_t generation)
{
	struct cache_variant *variant = cache->expected;

	return cache->generation == generation && variant && variant->entry->base == regs &&
			       inputs_are_equal(variant->entry, (const uint64_t *)regs)
		       ? variant
		       : NULL;
}

/* The expected variant equals the present stacks. */
static inline void stack_cache_confirm(struct stack_cache *cache, struct cache_variant *variant)
{
	if (!variant->object.is_used)
		variant->object.is_used = true;
	cache->last = variant;
	cache->expected = variant->next_hit;
}

/*
 * Finds another variant than the expected one, or returns NULL. `entry` has the present native
 * stack; NULL: it is not known. Enters the thread's Python state, if it has one.
 */
struct cache_variant *stack_cache_find_other(struct stack_cache *cache,
					     const struct caller_regs *regs,
					     const struct python_runtime *python,
					     struct python_thread *thread, uint64_t generation,
					     struct cache_entry *entry);

#endif
