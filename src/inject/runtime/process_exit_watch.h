/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects that the program's last thread has ended. The C library ends a process with its last
 * thread. The tracer's threads, and those that CUPTI starts for it, must not keep the process
 * alive. Makes system calls and calls malloc.
 */
#ifndef XT_INJECT_PROCESS_EXIT_WATCH_H
#define XT_INJECT_PROCESS_EXIT_WATCH_H

#include <stdbool.h>

/*
 * Enclose the start-up: if the process has one thread before, all threads created in between belong
 * to the tracer. Called by the thread of InitializeInjection().
 */
void process_exit_watch_begin(void);
void process_exit_watch_end(void);

/*
 * Whether the main thread and all other threads of the program have ended. False if unknown. Writer
 * thread.
 */
bool process_exit_watch_has_ended(void);

/*
 * Ends the process as the C library does after the last thread, in a new thread that runs the
 * program's exit handlers. Writer thread, as its last action.
 */
void process_exit_watch_end_process(void);

#endif
