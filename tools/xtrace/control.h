/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts recording in running processes, for other commands than xtrace start.
 */
#ifndef XTRACE_CONTROL_H
#define XTRACE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "processes.h"

/*
 * Does what 'xtrace start [--duration]' does with these processes, and prints the same. target: how
 * the user names them in the next command. duration_ns 0: returns when they record. False if none
 * confirmed. Changes the order of the list.
 */
bool control_start(struct process_list *list, const char *target, uint64_t duration_ns);

/* From now on, Ctrl-C ends control_start(), also if it comes before it. */
void control_handle_interrupts(void);

#endif
