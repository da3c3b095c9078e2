/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects whether a library has been loaded since. Every launch asks this, because a cached stack
 * is void once other code may be at its addresses. That takes an unload and a load, so counting
 * loads is enough.
 *
 * glibc reports its load counter through dl_iterate_phdr(), under a lock. loader_watch_*() finds
 * the counter itself in the loader's exported data. A query is then one memory read. If the counter
 * cannot be found, the writer thread polls the loader every few milliseconds.
 */
#ifndef XT_INJECT_LOADER_WATCH_H
#define XT_INJECT_LOADER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/runtime/hot_state.h"

/*
 * Start the search for the counter, then narrow it after each load or unload of a library. At
 * start-up, from one thread.
 */
void loader_watch_begin(void);
void loader_watch_narrow(void);

/* Ends the search; true if the counter was found. */
bool loader_watch_end(void);

/*
 * The number of loads, for the writer thread. If the counter was not found, asks the loader and
 * stores the answer for loader_generation().
 */
uint64_t loader_watch_poll(void);

HOT_EXTERN const uint64_t *loader_generation_word;

/* The number of loads so far. Any thread; one memory read. */
static inline uint64_t loader_generation(void)
{
	return __atomic_load_n(__atomic_load_n(&loader_generation_word, __ATOMIC_RELAXED),
			       __ATOMIC_RELAXED);
}

#endif
