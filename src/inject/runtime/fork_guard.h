/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells whether this process is the traced one. The C library does not report a child made by a raw
 * system call. Such a child has a copy of our memory and none of our threads.
 */
#ifndef XT_INJECT_FORK_GUARD_H
#define XT_INJECT_FORK_GUARD_H

#include <stdbool.h>

/* Makes the calling process the traced one. Once, when tracing starts. */
void fork_guard_begin(void);

/* In a forked child: no process is traced until fork_guard_begin(). */
void fork_guard_abandon(void);

/*
 * False in a child that shares or copied this memory, whatever its pid in its own namespace. True
 * if tracing has not started. Async-signal-safe.
 */
bool is_own_process(void);

#endif
