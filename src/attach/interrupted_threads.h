/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that a signal has stopped inside malloc, as garbage collectors do that stop the world. A
 * lock that the stub needs may be held until their handlers return.
 */
#ifndef XT_ATTACH_INTERRUPTED_THREADS_H
#define XT_ATTACH_INTERRUPTED_THREADS_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/target.h"

/*
 * Whether there is such a thread: *why. Walks the stacks of all blocked threads, or with is_again
 * of those that have moved since the last call.
 */
bool interrupted_threads_find(struct target *target, bool is_again, char *why, size_t why_bytes);

#endif
