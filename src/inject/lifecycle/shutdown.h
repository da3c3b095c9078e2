/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends recording before the process exits by exit(), return from main(), quick_exit() or _exit().
 * Flushes CUPTI and closes the log; waits for that at most two seconds.
 */
#ifndef XT_INJECT_SHUTDOWN_H
#define XT_INJECT_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

#define SHUTDOWN_TIMEOUT_NS UINT64_C(2000000000)

/* Installs the exit handlers and hooks. Called by InitializeInjection() once tracing runs. */
void shutdown_begin(void);

/* In a forked child, which has no log to close. True if its parent was tracing. */
bool shutdown_abandon(void);

#endif
