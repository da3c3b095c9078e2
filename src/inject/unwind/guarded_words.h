/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that any thread reads and writes without a lock. A sequence number guards them: it is odd
 * while a thread writes. A reader that sees it change treats its copy as a miss, and a writer gives
 * up if another one writes.
 */
#ifndef XT_INJECT_GUARDED_WORDS_H
#define XT_INJECT_GUARDED_WORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies the words. False if they may be torn. */
static inline bool guarded_words_read(const atomic_uint_fast64_t *sequence,
				      const atomic_uint_fast64_t *words, size_t count,
				      uint64_t *out)
{
	/* Pairs with the release in guarded_words_write(): the words of that number are there. */
	uint64_t before = atomic_load_explicit(sequence, memory_order_acquire);

	if (before & 1)
		return false;
	for (size_t i = 0; i < count; i++)
		out[i] = atomic_load_explicit(&words[i], memory_order_relaxed);
	/* Pairs with the fence in guarded_words_write(). */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(sequence, memory_order_relaxed) == before;
}

/* Replaces the words. False if another thread writes them. */
static inline bool guarded_words_write(atomic_uint_fast64_t *sequence, atomic_uint_fast64_t *words,
				       size_t count, const uint64_t *in)
{
	uint_fast64_t before = atomic_load_explicit(sequence, memory_order_relaxed);

	/* Acquire: the words of the writer before stay older than these. */
	if ((before & 1) ||
	    !atomic_compare_exchange_strong_explicit(sequence, &before, before + 1,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	/* A thread that reads one of these words sees the odd number. */
	atomic_thread_fence(memory_order_release);
	for (size_t i = 0; i < count; i++)
		atomic_store_explicit(&words[i], in[i], memory_order_relaxed);
	atomic_store_explicit(sequence, before + 2, memory_order_release);
	return true;
}

#endif
