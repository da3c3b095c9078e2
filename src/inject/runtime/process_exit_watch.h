/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the program's last thread has ended. The C library ends a process when its last thread does; to it
 * the tracer's threads, and those that CUPTI starts because we are there, are threads like others. They
 * must not keep a process alive. Makes system calls, and malloc.
 */
#ifndef XT_INJECT_PROCESS_EXIT_WATCH_H
#define XT_INJECT_PROCESS_EXIT_WATCH_H

#include <stdbool.h>

/* Before anything is started, and when all is: if the process has a single thread, what is started
 * between is not the program's. By the thread that calls InitializeInjection(). */
void process_exit_watch_begin(void);
void process_exit_watch_end(void);

/* Whether the main thread has ended and there is no thread of the program's beside it. False if that
 * cannot be found out. Writer thread. */
bool process_exit_watch_has_ended(void);

/* What the C library does when the last thread of a process ends, in a thread of its own, as the program's
 * exit handlers run there. Writer thread, which has nothing more to do then. */
void process_exit_watch_end_process(void);

#endif
