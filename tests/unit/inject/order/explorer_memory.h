/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory model of one execution: what a load may return, and which accesses race.
 *
 * Each atomic location keeps all its stores, oldest first. A thread's clock says which stores it
 * must have seen (view) and which actions of other threads happened before (time). Release stores
 * and fences attach the clock to a store; acquire loads and fences join it.
 */
#ifndef XT_TEST_EXPLORER_MEMORY_H
#define XT_TEST_EXPLORER_MEMORY_H

#include "explorer.h"

#define LOCATIONS_MAX 192
#define STORES_MAX    64

/* Forgets everything. Writes before memory_begin_threads() are visible to all threads. */
void memory_reset(void);
void memory_begin_threads(void);

/* Whether threads run, so that accesses are checked. */
bool memory_is_active(void);

void memory_weaken(enum explorer_weaken what, const void *place);

/* In explorer.c: chooses one of count options; lets another thread run; checks a kill. */
unsigned explorer_choose(unsigned count);
void explorer_switch(void);
void explorer_before_write(void);

/*
 * In explorer.c: zeroed memory that outlives an execution. Not calloc(), whose result a compiler
 * may turn into a variable.
 */
void *explorer_allocate(size_t bytes);

/* Whether at_each_write() runs. */
bool explorer_is_checking(void);

/* Atomic operations of the running thread on bytes (1 to 8) at place. order: memory_order. */
uint64_t memory_load(volatile void *place, unsigned bytes, int order);
void memory_store(volatile void *place, unsigned bytes, uint64_t value, int order);
uint64_t memory_change(volatile void *place, unsigned bytes,
		       uint64_t (*change)(uint64_t old, uint64_t operand), uint64_t operand,
		       int order);
bool memory_compare_exchange(volatile void *place, unsigned bytes, uint64_t *expected,
			     uint64_t wanted, int order, int failure_order);
void memory_fence(int order);

/* Plain accesses. */
void memory_plain(const void *place, size_t bytes, bool is_write);

#endif
