/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process to attach: its properties, and the reasons not to attach it. A reason is a line for
 * the user, from the process's status and the kernel's rules on who may trace another process.
 */
#ifndef XT_ATTACH_TARGET_H
#define XT_ATTACH_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/process_modules.h"

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
void ptrace_refusal_explain(const struct ptrace_facts *facts, const struct why *why);

/* Whether the caller has blocked a signal that would have ended this program. */
bool attach_is_interrupted(void);

bool module_is_program(pid_t pid, const struct process_module *module);

/* Returns another process that shares the memory of this one, or 0. */
pid_t shared_memory_find(pid_t pid);

/* A line for the user: what forbids it, then how to be allowed. */
#define ATTACH_WHY_BYTES 4096

struct target {
	pid_t pid;
	int lock;  /* tells a second xtrace attach on this /proc at once; -1: none */
	int pidfd; /* -1: the kernel has none */
	uint64_t start_ticks, stack_start; /* as in struct thread_stat */
	struct proc_status status;	   /* of the main thread, which was checked */
	struct process_modules modules;
	char cuda_path[PATH_MAX]; /* of its libcuda, in its mount namespace */
};

/*
 * Checks everything that can be known without touching the process, and locks it against another
 * xtrace attach. library: the file that it will open. Returns 0, or -errno with *why. Call
 * target_close() in both cases.
 */
int target_open(struct target *target, pid_t pid, const char *library, const struct why *why);

/* Whether a path names the same file or directory here and in the process. *why if not. */
bool target_sees(const struct target *target, const char *path, const struct why *why);

/* Whether it is still the process that was checked: it has not ended or executed a program. */
bool target_is_same(const struct target *target);

/*
 * Whether what a thread creates has the rights that were checked: those of the main thread. status:
 * of the thread.
 */
bool target_allows_thread(const struct target *target, const struct proc_status *status,
			  const struct why *why);

void target_close(struct target *target);

#endif
