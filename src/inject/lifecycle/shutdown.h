/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tracer leaves a process that ends by itself, in whichever way it calls for its end: exit()
 * and the return of main(), quick_exit(), _exit(). What CUPTI still holds is asked for, and the log is
 * closed; the end waits for that two seconds at most.
 */
#ifndef XT_INJECT_SHUTDOWN_H
#define XT_INJECT_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

#define SHUTDOWN_TIMEOUT_NS UINT64_C(2000000000)

/* From now on recording is brought to its end before the process is. By InitializeInjection(), when
 * all has begun. */
void shutdown_begin(void);

/* In a forked child, which has nothing to bring to an end. True if its parent had. */
bool shutdown_abandon(void);

#endif
