/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this the process that is traced? Of a child that was not made by fork(), but by a system call, nobody
 * tells us: it has our memory as it was, and none of our threads.
 */
#ifndef XT_INJECT_FORK_GUARD_H
#define XT_INJECT_FORK_GUARD_H

#include <stdbool.h>

/* From now on it is this one. Once, as tracing begins. */
void fork_guard_begin(void);

/* In a forked child: it is no process, until one begins. */
void fork_guard_abandon(void);

/* False in a child that has this memory, or a copy of it, whatever its pid in its own namespace. True before
 * any has begun. Async-signal-safe. */
bool is_own_process(void);

#endif
