/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a library been loaded since? The question is asked at every launch, because a call stack
 * that was known is not to be trusted once something else may lie at its addresses. That takes an
 * unload and a load, so counting loads is enough.
 *
 * glibc counts them and tells through dl_iterate_phdr(), under a lock. The counter itself is a
 * word inside the loader's exported data; loader_watch_*() find it by watching which word moves
 * with the count while libraries come and go, and from then on reading it is one load. Where it
 * cannot be found, the writer thread asks every few milliseconds instead.
 */
#ifndef XT_INJECT_LOADER_WATCH_H
#define XT_INJECT_LOADER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Begins to look for the counter, and looks again after a library was loaded or unloaded. Called
 * while the library starts, from one thread. */
void loader_watch_begin(void);
void loader_watch_narrow(void);

/* Ends the search; true if the counter was found. */
bool loader_watch_end(void);

/* The number of loads, for the writer thread: as loader_generation() where the counter was found,
 * else it asks the loader, and keeps the answer for loader_generation(). */
uint64_t loader_watch_ask(void);

extern const uint64_t *loader_generation_word;

/* The number of loads so far. Any thread, one memory read. */
static inline uint64_t loader_generation(void)
{
	return __atomic_load_n(__atomic_load_n(&loader_generation_word, __ATOMIC_RELAXED),
			       __ATOMIC_RELAXED);
}

#endif
