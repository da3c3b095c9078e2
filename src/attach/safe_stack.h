/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a blocked thread may be borrowed, by its stack. The stub needs locks of the C library
 * that such a thread must not hold: those of malloc, the loader, and the list of threads.
 */
#ifndef XT_ATTACH_SAFE_STACK_H
#define XT_ATTACH_SAFE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sampler/perf_events.h"
#include "sampler/process_modules.h"

enum stack_safety {
	STACK_SAFE,
	STACK_UNSAFE,	      /* with *why */
	STACK_UNKNOWN,	      /* with *why: the whole stack could not be walked */
	STACK_WAITS_FOR_LOCK, /* safe, but better choose another thread */
	STACK_INTERRUPTED,    /* with *why: a signal handler keeps such a lock held */
};

/* Walks the stack of a thread that does not run. */
enum stack_safety safe_stack_check(struct process_modules *modules, pid_t pid,
				   const struct thread_registers *registers, char *why,
				   size_t why_bytes);

#endif
