/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process to attach: its properties, and the reasons not to attach it.
 */
#ifndef XT_ATTACH_TARGET_H
#define XT_ATTACH_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/refusal.h"
#include "sampler/process_modules.h"

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
int target_open(struct target *target, pid_t pid, const char *library, char *why, size_t why_bytes);

/* Whether a path names the same file or directory here and in the process. *why if not. */
bool target_sees(const struct target *target, const char *path, char *why, size_t why_bytes);

/* Whether it is still the process that was checked: it has not ended or executed a program. */
bool target_is_same(const struct target *target);

/*
 * Whether what a thread creates has the rights that were checked: those of the main thread. status:
 * of the thread.
 */
bool target_allows_thread(const struct target *target, const struct proc_status *status, char *why,
			  size_t why_bytes);

void target_close(struct target *target);

#endif
