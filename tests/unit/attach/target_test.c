/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a process is still the one that was checked, and whether it shares its memory.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/target.h"
#include "sampler/process_read.h"

static struct target identify(pid_t pid)
{
	int no_budget = 0;
	struct thread_files files = {.pid = pid, .tid = pid, .budget = &no_budget};
	struct thread_stat stat;

	assert_int_equal(thread_files_stat(&files, &stat), 0);
	thread_files_close(&files);
	return (struct target){.pid = pid,
			       .pidfd = -1,
			       .start_ticks = stat.start_ticks,
			       .stack_start = stat.stack_start};
}

static void tells_apart_processes_with_one_id(void **unused)
{
	struct target target, other;
	pid_t child = fork();

	(void)unused;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	}
	target = other = identify(child);
	assert_true(target_is_same(&target));
	other.start_ticks++;
	assert_false(target_is_same(&other));
	other = target;
	other.stack_start += 4096;
	assert_false(target_is_same(&other));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_false(target_is_same(&target));
}

static void allows_threads_with_the_rights_that_were_checked(void **unused)
{
	static const struct {
		const char *name, *why;
	} fields[] = {
		{"\nSeccomp:\t", "seccomp"},
		{"\nUid:\t", "user"},
		{"\nGid:\t", "group"},
		{"\nCapEff:\t", "capabilities"},
	};
	static struct target target;
	struct proc_status status;
	char why[128];

	(void)unused;
	target.pid = getpid();
	assert_true(proc_status_read(&status, getpid()));
	target.status = status;
	assert_true(target_allows_thread(&target, &status, &(struct why){why, sizeof(why)}));
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		char *value = strstr(target.status.text, fields[i].name);

		assert_non_null(value);
		value += strlen(fields[i].name);
		*value ^= 1; /* another digit */
		assert_false(
			target_allows_thread(&target, &status, &(struct why){why, sizeof(why)}));
		assert_non_null(strstr(why, fields[i].why));
		*value ^= 1;
	}
	target.pid = getppid();
	assert_false(target_allows_thread(&target, &status, &(struct why){why, sizeof(why)}));
	assert_non_null(strstr(why, "ended"));
}

/* Containers often forbid kcmp(). */
static bool forbids_kcmp;

long __wrap_syscall(long number, long a, long b, long c, long d, long e);
long __real_syscall(long number, long a, long b, long c, long d, long e);

long __wrap_syscall(long number, long a, long b, long c, long d, long e)
{
	if (number != SYS_kcmp || !forbids_kcmp)
		return __real_syscall(number, a, b, c, d, e);
	errno = EPERM;
	return -1;
}

static int sleep_in_child(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pause();
}

/* A process that does as little as its siblings. Returns its id while it sleeps. */
static pid_t fork_sleeping(void)
{
	struct proc_status status;
	pid_t child = fork();

	if (!child)
		_exit(sleep_in_child(NULL));
	assert_true(child > 0);
	do {
		usleep(1000);
		assert_true(proc_status_read(&status, child));
	} while (*proc_status_text(&status, "State") != 'S');
	return child;
}

/* A process that waits for its child of vfork(). */
static pid_t fork_waiting(char *stack_end)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		clone(sleep_in_child, stack_end, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
		_exit(0);
	}
	assert_true(child > 0);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void refuses_processes_that_share_their_memory(void **unused)
{
	static char stack[65536] __attribute__((aligned(16)));
	static struct target target;
	char why[ATTACH_WHY_BYTES];
	pid_t sharing = clone(sleep_in_child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	pid_t siblings[] = {fork_sleeping(), fork_sleeping()};
	pid_t waiting = fork_waiting(stack + sizeof(stack)), child;
	char before[32], after[32];

	(void)unused;
	assert_true(sharing > 0);
	while (!(child = shared_memory_find(waiting)))
		usleep(1000);
	assert_true(proc_file_read("/proc/self/coredump_filter", before, sizeof(before)) > 0);
	for (int i = 0; i < 2; i++) {
		forbids_kcmp = i == 1;
		assert_int_equal(shared_memory_find(sharing), getpid());
		assert_int_equal(shared_memory_find(getpid()), sharing);
		assert_int_equal(shared_memory_find(child), waiting);
		assert_int_equal(shared_memory_find(waiting), child);
		for (int sibling = 0; sibling < 2; sibling++)
			assert_int_equal(shared_memory_find(siblings[sibling]), 0);
	}
	assert_true(proc_file_read("/proc/self/coredump_filter", after, sizeof(after)) > 0);
	assert_string_equal(before, after);
	forbids_kcmp = false;
	assert_int_equal(target_open(&target, sharing, "/none", &(struct why){why, sizeof(why)}),
			 -EBUSY);
	assert_non_null(strstr(why, "shares its memory with process"));
	target_close(&target);
	end(sharing);
	assert_int_equal(shared_memory_find(getpid()), 0);
	kill(child, SIGKILL);
	end(waiting);
	for (int sibling = 0; sibling < 2; sibling++)
		end(siblings[sibling]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_apart_processes_with_one_id),
		cmocka_unit_test(allows_threads_with_the_rights_that_were_checked),
		cmocka_unit_test(refuses_processes_that_share_their_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
