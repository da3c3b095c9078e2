/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counter that one thread writes and others read.
 */
#ifndef XT_INJECT_COUNTER_H
#define XT_INJECT_COUNTER_H

#include <stdint.h>

/* Only the owning thread may call this. Relaxed, so that readers see whole values. */
static inline void counter_add(uint64_t *counter, uint64_t value)
{
#if !defined(__x86_64__) || defined(__SANITIZE_THREAD__)
	__atomic_store_n(counter, *counter + value, __ATOMIC_RELAXED);
#else
	/* The same in one instruction, for which gcc uses three. */
	__asm__("addq %1, %0" : "+m"(*counter) : "er"(value));
#endif
}

/*
 * The same for a lost call, which is counted as seen first. Release: a reader that acquires this
 * count has the seen call too.
 */
static inline void counter_add_lost(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, *counter + value, __ATOMIC_RELEASE);
}

#endif
