/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/candidates.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/safe_stack.h"
#include "sampler/thread_files.h"

static void judge_stack(struct candidate *candidate, struct target *target,
			const struct thread_syscall *call)
{
	struct thread_registers registers = {.known = 1u << THREAD_RIP | 1u << THREAD_RSP};
	enum stack_safety safety;

	registers.value[THREAD_RIP] = call->instruction;
	registers.value[THREAD_RSP] = call->stack_pointer;
	safety = safe_stack_check(&target->modules, target->pid, &registers, candidate->why_not,
				  sizeof(candidate->why_not));
	/* The walk goes further with all registers of a stopped thread. */
	candidate->is_last = safety == STACK_UNKNOWN;
	if (safety == STACK_SAFE || (candidate->is_last && candidate->rank <= WAIT_REMAINING))
		candidate->why_not[0] = '\0';
}

static void judge(struct candidate *candidate, struct target *target)
{
	int no_budget = 0;
	struct thread_files files = {
		.pid = target->pid, .tid = candidate->tid, .budget = &no_budget};
	struct thread_syscall call;
	struct thread_stat stat;

	candidate->rank = WAIT_UNFIT;
	thread_files_syscall(&files, &call);
	if (thread_files_stat(&files, &stat))
		snprintf(candidate->why_not, sizeof(candidate->why_not), "has ended");
	else if (call.kind != SYSCALL_BLOCKED || stat.state != 'S')
		snprintf(candidate->why_not, sizeof(candidate->why_not), "%s",
			 stat.state == 'D' ? "waits for the kernel and cannot be stopped"
					   : "is not blocked in a system call");
	else
		candidate->rank = wait_call_rank(call.number, call.arguments);
	thread_files_close(&files);
	if (candidate->why_not[0])
		return;
	if (candidate->rank == WAIT_UNFIT)
		snprintf(candidate->why_not, sizeof(candidate->why_not),
			 "is blocked in system call %ld, which cannot be repeated exactly",
			 call.number);
	else
		judge_stack(candidate, target, &call);
}

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int fit = (x->why_not[0] ? 2 : x->is_last) - (y->why_not[0] ? 2 : y->is_last);

	return fit ? fit : x->rank != y->rank ? (int)x->rank - (int)y->rank : x->tid - y->tid;
}

/* If the list is full, a thread that is fit replaces one that is not. */
static void add(struct candidates *candidates, const struct candidate *next)
{
	if (candidates->count < CANDIDATES_MAX) {
		candidates->list[candidates->count++] = *next;
		return;
	}
	for (size_t i = 0; i < CANDIDATES_MAX && !next->why_not[0]; i++)
		if (candidates->list[i].why_not[0]) {
			candidates->list[i] = *next;
			return;
		}
}

void candidates_find(struct candidates *candidates, struct target *target)
{
	const struct dirent *entry;
	struct candidate next;
	char path[64];
	DIR *folder;

	*candidates = (struct candidates){0};
	snprintf(path, sizeof(path), "/proc/%d/task", target->pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		candidates->thread_count++;
		next = (struct candidate){.tid = (pid_t)atoi(entry->d_name)};
		judge(&next, target);
		add(candidates, &next);
	}
	if (folder)
		closedir(folder);
	qsort(candidates->list, candidates->count, sizeof(*candidates->list), compare);
	while (candidates->fit_count < candidates->count &&
	       !candidates->list[candidates->fit_count].why_not[0])
		candidates->fit_count++;
}
