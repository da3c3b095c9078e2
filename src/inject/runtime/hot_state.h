/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that every launch reads and that rarely changes. It is placed together to touch few cache
 * lines: between two launches, the program has usually evicted them.
 */
#ifndef XT_INJECT_HOT_STATE_H
#define XT_INJECT_HOT_STATE_H

#include <stdint.h>

#define HOT_STATE __attribute__((section("xt_hot_state")))

/* Declares such data. The library does not export it, so its address need not be looked up. */
#define HOT_EXTERN extern __attribute__((visibility("hidden")))

/*
 * A counter that one thread writes and others read. Only that thread may call this. Relaxed, so
 * that readers see whole values.
 */
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
