/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs code under every interleaving, and lets each load return the values that the C11 memory
 * model allows. MEMORY_ORDER.md (Known gaps) names the executions that it leaves out.
 *
 * The code under test is the product's. It is compiled with -fsanitize=thread, which replaces each
 * access to memory by a call, but linked with explorer_hooks.c instead of the sanitizer. So the
 * accesses of the real code are explored, not a model of it.
 *
 * - Threads are coroutines. They switch before each atomic operation and fence.
 * - A load returns any value that coherence and happens-before allow (explorer_memory.c).
 * - Plain accesses that no order separates are a data race, which is a failure. This also finds a
 *   missing barrier whose effect needs a plain load or store to move.
 *
 * memset(), memcpy() and memmove() are plain accesses, too (CMakeLists.txt).
 */
#ifndef XT_TEST_EXPLORER_H
#define XT_TEST_EXPLORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPLORER_THREADS_MAX 4

struct explorer_program {
	void (*set_up)(void); /* before the threads start; its writes are visible to all */
	void (*threads[EXPLORER_THREADS_MAX - 1])(void);
	void (*at_each_write)(void); /* checks a kill here: sees all executed stores */
	void (*at_end)(void);	     /* sees all stores */
	/* Maximum switches away from a thread that could continue; 0: no limit. */
	unsigned switches_max;
};

/* Explores all executions. Returns how many, or 0 after a failure, which *why tells; else NULL. */
uint64_t explorer_run(const struct explorer_program *program, const char **why);

/* For programs: ends the execution as a failure. */
void explorer_fail(const char *why);

/* Number of the running thread, from 1; 0 in set_up() and at_end(). */
unsigned explorer_thread(void);

/* Operations whose order the next runs weaken to relaxed, and fences that they leave out. */
enum explorer_weaken {
	WEAKEN_NOTHING,
	WEAKEN_STORES, /* also read-modify-writes: their store */
	WEAKEN_LOADS,  /* also read-modify-writes: their load */
	WEAKEN_RELEASE_FENCES,
	WEAKEN_ACQUIRE_FENCES,
	WEAKEN_SEQ_CST, /* to acquire and release */
};

/* place: the atomic object, or NULL for fences. */
void explorer_weaken(enum explorer_weaken what, const void *place);

/* Memory that each execution finds zeroed. */
void *explorer_memory(size_t bytes);

#endif
