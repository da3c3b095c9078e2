/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/interrupted_threads.h"

#include <ctype.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/safe_stack.h"
#include "sampler/process_read.h"

#define WHY_BYTES    128
#define SEEN_THREADS 4096 /* power of two */

/* Where a thread was blocked when its stack was walked last. */
static struct {
	pid_t tid; /* 0: empty */
	uint64_t instruction, stack_pointer;
} seen[SEEN_THREADS];

static bool was_seen(pid_t tid, const struct thread_syscall *call)
{
	size_t i = (size_t)tid & (SEEN_THREADS - 1);
	bool is_same = seen[i].tid == tid && seen[i].instruction == call->instruction &&
		       seen[i].stack_pointer == call->stack_pointer;

	seen[i].tid = tid;
	seen[i].instruction = call->instruction;
	seen[i].stack_pointer = call->stack_pointer;
	return is_same;
}

static bool is_interrupted(struct target *target, pid_t tid, char *why)
{
	int no_budget = 0;
	struct thread_files files = {.pid = target->pid, .tid = tid, .budget = &no_budget};
	struct thread_registers registers = {.known = 1u << THREAD_RIP | 1u << THREAD_RSP};
	struct thread_syscall call;

	thread_files_syscall(&files, &call);
	thread_files_close(&files);
	if (call.kind != SYSCALL_BLOCKED || was_seen(tid, &call))
		return false;
	registers.value[THREAD_RIP] = call.instruction;
	registers.value[THREAD_RSP] = call.stack_pointer;
	return safe_stack_check(&target->modules, target->pid, &registers, why, WHY_BYTES) ==
	       STACK_INTERRUPTED;
}

bool interrupted_threads_find(struct target *target, bool is_again, char *why, size_t why_bytes)
{
	char path[64], reason[WHY_BYTES];
	const struct dirent *entry;
	bool is_found = false;
	DIR *folder;

	if (!is_again)
		memset(seen, 0, sizeof(seen));
	snprintf(path, sizeof(path), "/proc/%d/task", target->pid);
	folder = opendir(path);
	while (folder && !is_found && (entry = readdir(folder))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		is_found = isdigit((unsigned char)entry->d_name[0]) &&
			   is_interrupted(target, tid, reason);
		if (is_found)
			snprintf(why, why_bytes,
				 "thread %d %s, so it may hold a lock that xtrace needs", tid,
				 reason);
	}
	if (folder)
		closedir(folder);
	return is_found;
}
