/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of /proc/PID/status (proc_pid_status(5)).
 */
#ifndef XT_ATTACH_PROC_STATUS_H
#define XT_ATTACH_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_status {
	char text[8192];
};

/* The state of a process or thread. False if it has ended. */
bool proc_status_read(struct proc_status *status, pid_t id);

/* The value after "NAME:", less white space. NULL if there is no such field. */
const char *proc_status_text(const struct proc_status *status, const char *name);

/* Number `index` (from 0) of a field, or -1. */
long proc_status_number(const struct proc_status *status, const char *name, int index);

/* A hexadecimal field; 0 if there is none. */
uint64_t proc_status_hex(const struct proc_status *status, const char *name);

/* Signals that wait for a handler of the thread and may be delivered now. */
uint64_t proc_status_deliverable(const struct proc_status *status);

/* Whether the process is in another namespace NAME than this one. False if that is not known. */
bool proc_is_other_namespace(pid_t pid, const char *name);

#endif
