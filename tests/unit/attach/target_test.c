/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a process is still the one that was checked.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/target.h"
#include "sampler/thread_files.h"

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
	assert_true(target_allows_thread(&target, &status, why, sizeof(why)));
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		char *value = strstr(target.status.text, fields[i].name);

		assert_non_null(value);
		value += strlen(fields[i].name);
		*value ^= 1; /* another digit */
		assert_false(target_allows_thread(&target, &status, why, sizeof(why)));
		assert_non_null(strstr(why, fields[i].why));
		*value ^= 1;
	}
	target.pid = getppid();
	assert_false(target_allows_thread(&target, &status, why, sizeof(why)));
	assert_non_null(strstr(why, "ended"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_apart_processes_with_one_id),
		cmocka_unit_test(allows_threads_with_the_rights_that_were_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
