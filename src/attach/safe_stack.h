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

/*
 * Walks the stack of a thread that does not run. False with *why: it must not be borrowed, or its
 * whole stack could not be walked.
 */
bool safe_stack_check(struct process_modules *modules, pid_t pid,
		      const struct thread_registers *registers, char *why, size_t why_bytes);

#endif
