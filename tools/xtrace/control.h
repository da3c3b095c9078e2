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
 * Starts recording in these processes, and prints the messages of 'xtrace start'. target is their
 * name in commands that a message suggests. With duration_ns 0, returns when they record, else
 * after that time. Returns false if no process confirmed. Changes the order of the list.
 */
bool control_start(struct process_list *list, const char *target, uint64_t duration_ns);

/* From now on, Ctrl-C ends control_start(), also if it comes before it. */
void control_handle_interrupts(void);

#endif
