/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the present stacks with those in the stack cache. Runs at every launch in the program's
 * threads: no lock, no malloc, no system call. Inline, because a launch spends most of its time
 * here.
 */
#ifndef XT_INJECT_STACK_CACHE_MATCH_H
#define XT_INJECT_STACK_CACHE_MATCH_H

#include <string.h>

#include "inject/capture/stack_cache.h"

/* A run has a multiple of this many inputs; its last one repeats. */
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
