/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/candidates.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/safe_stack.h"
#include "sampler/process_read.h"

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
	candidate->is_locked = safety == STACK_WAITS_FOR_LOCK;
	if (safety == STACK_SAFE || candidate->is_locked ||
	    (candidate->is_last && wait_call_rank(call->number, call->arguments) <= WAIT_REMAINING))
		candidate->why_not[0] = '\0';
}

/* It may have a time limit (SO_RCVTIMEO), for which the call would wait again. */
static bool is_socket(const struct target *target, int descriptor)
{
	char path[64], name[16] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", target->pid, descriptor);
	return readlink(path, name, sizeof(name) - 1) > 0 && !strncmp(name, "socket:", 7);
}

static enum wait_rank rank_call(const struct target *target, const struct thread_syscall *call)
{
	enum wait_rank rank = wait_call_rank(call->number, call->arguments);

	return rank == WAIT_EXACT && wait_call_reads(call->number) &&
			       is_socket(target, (int)call->arguments[0])
		       ? WAIT_REPEATED
		       : rank;
}

static void judge(struct candidate *candidate, struct target *target)
{
	int no_budget = 0;
	struct thread_files files = {
		.pid = target->pid, .tid = candidate->tid, .budget = &no_budget};
	struct proc_status status;
	struct thread_syscall call;
	struct thread_stat stat;

	candidate->rank = WAIT_UNFIT;
	thread_files_syscall(&files, &call);
	if (thread_files_stat(&files, &stat) || !proc_status_read(&status, candidate->tid))
		snprintf(candidate->why_not, sizeof(candidate->why_not), "has ended");
	else if (!target_allows_thread(target, &status, candidate->why_not,
				       sizeof(candidate->why_not)))
		candidate->rank = WAIT_UNFIT;
	else if (call.kind != SYSCALL_BLOCKED || stat.state != 'S')
		snprintf(candidate->why_not, sizeof(candidate->why_not), "%s",
			 stat.state == 'D'   ? "waits for the kernel and cannot be stopped"
			 : stat.state == 'R' ? "is running, not waiting in a system call"
					     : "is not blocked in a system call");
	else
		candidate->rank = rank_call(target, &call);
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

/* Stopping a thread with an unusual schedule may delay others. */
static int cost(const struct candidate *candidate)
{
	int rank = (int)candidate->rank * 2;

	if (candidate->is_locked)
		return WAIT_UNFIT * 2;
	if (!candidate->is_unusual)
		return rank;
	return rank < WAIT_REMAINING * 2 ? WAIT_REMAINING * 2 + 1 : rank + 1;
}

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const int differences[] = {
		!!x->why_not[0] - !!y->why_not[0],
		x->is_refused - y->is_refused,
		x->is_last - y->is_last,
		cost(x) - cost(y),
	};

	for (size_t i = 0; i < sizeof(differences) / sizeof(*differences); i++)
		if (differences[i])
			return differences[i];
	return x->tid - y->tid;
}

/* If the list is full, a thread replaces the worst one. */
static void add(struct candidates *candidates, const struct candidate *next)
{
	struct candidate *worst = candidates->list;

	if (candidates->count < CANDIDATES_MAX) {
		candidates->list[candidates->count++] = *next;
		return;
	}
	for (size_t i = 1; i < CANDIDATES_MAX; i++)
		if (compare(&candidates->list[i], worst) > 0)
			worst = &candidates->list[i];
	if (compare(next, worst) < 0)
		*worst = *next;
}

static bool was_refused(const struct candidates *candidates, pid_t tid)
{
	size_t count = candidates->refused_count < CANDIDATES_REFUSED_MAX
			       ? candidates->refused_count
			       : CANDIDATES_REFUSED_MAX;

	for (size_t i = 0; i < count; i++)
		if (candidates->refused[i] == tid)
			return true;
	return false;
}

void candidates_refuse(struct candidates *candidates, struct candidate *candidate, const char *why)
{
	snprintf(candidate->why_not, sizeof(candidate->why_not), "%.*s", CANDIDATE_WHY_BYTES - 1,
		 why);
	candidates->refused[candidates->refused_count++ % CANDIDATES_REFUSED_MAX] = candidate->tid;
}

static void sort(struct candidates *candidates)
{
	for (size_t i = 0; i < candidates->count; i++)
		candidates->list[i].is_unusual =
			!schedule_equals(&candidates->list[i].schedule, &candidates->usual);
	qsort(candidates->list, candidates->count, sizeof(*candidates->list), compare);
	while (candidates->fit_count < candidates->count &&
	       !candidates->list[candidates->fit_count].why_not[0])
		candidates->fit_count++;
	/* All were tried, so the next round starts again. */
	if (candidates->list[0].is_refused)
		candidates->refused_count = 0;
}

void candidates_find(struct candidates *candidates, struct target *target)
{
	const struct dirent *entry;
	struct candidate next;
	char path[64];
	DIR *folder;

	candidates->count = candidates->fit_count = candidates->thread_count = 0;
	schedule_read(&candidates->usual, target->pid);
	schedule_make_usual(&candidates->usual);
	snprintf(path, sizeof(path), "/proc/%d/task", target->pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		candidates->thread_count++;
		next = (struct candidate){.tid = (pid_t)atoi(entry->d_name)};
		next.is_refused = was_refused(candidates, next.tid);
		schedule_read(&next.schedule, next.tid);
		schedule_add_cpus(&candidates->usual, &next.schedule);
		judge(&next, target);
		add(candidates, &next);
	}
	if (folder)
		closedir(folder);
	sort(candidates);
}
