/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a process or thread cannot be used: the line for the user, the status that it follows from,
 * and the kernel's reasons not to let this process trace another one of the same user.
 */
#ifndef XT_ATTACH_REFUSAL_H
#define XT_ATTACH_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct why {
	char *text; /* of the caller */
	size_t bytes;
};

/* Writes the line, cut to its room. Returns error. */
__attribute__((format(printf, 3, 4))) int refuse(const struct why *why, int error,
						 const char *format, ...);

/* Fields of /proc/PID/status (proc_pid_status(5)). */
struct proc_status {
	char text[8192];
};

/* The state of a process or thread. False if it has ended. */
bool proc_status_read(struct proc_status *status, pid_t id);

/* The value after "NAME:", less white space. NULL if there is no such field. */
const char *proc_status_text(const struct proc_status *status, const char *name);

/* Number `index` (from 0) of a field, or -1. */
long proc_status_number(const struct proc_status *status, const char *name, int index);

/* Signals that wait for a handler of the thread and may be delivered now. */
uint64_t proc_status_deliverable(const struct proc_status *status);

/* Whether the process is in another namespace NAME than this one. False if that is not known. */
bool proc_is_other_namespace(pid_t pid, const char *name);

/* The facts that the kernel's rules depend on (ptrace(2), "Ptrace access mode checking"). */
struct ptrace_facts {
	bool is_blocked;	     /* this process may trace nothing: a seccomp filter */
	bool is_undumpable;	     /* the process protects its memory */
	bool is_other_user_space;    /* it is in another user namespace */
	uint64_t extra_capabilities; /* that it has and this process lacks */
	bool is_capable;	     /* this process has CAP_SYS_PTRACE */
	int yama_scope;		     /* -1: no Yama */
};

void ptrace_facts_read(struct ptrace_facts *facts, pid_t pid);

/* Why ptrace is refused: one line, with a remedy. */
void ptrace_refusal_explain(const struct ptrace_facts *facts, char *why, size_t why_bytes);

#endif
