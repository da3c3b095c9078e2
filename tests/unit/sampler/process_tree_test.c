/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "log/base/monotonic.h"
#include "sampler/observe.h"
#include "sampler/sampling.h"

#define MANY_CHILDREN 1500

static struct sampling sampling; /* too large for the stack */

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int set_up(void **state)
{
	(void)state;
	sampling = (struct sampling){.random = 1,
				     .period_ns = 10000000,
				     .log_limit = 1,
				     .root = getpid(),
				     .claims.epoll_fd = -1};
	sampling.claims.data_dir = "."; /* no log of these tests is written */
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	while (sampling.processes.count)
		sampling_end_process(&sampling, sampling.processes.list[0]);
	free(sampling.processes.list);
	return 0;
}

/* Sets the limit of open files. Returns the old one. */
static struct rlimit limit_files(rlim_t count)
{
	struct rlimit old, limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	limit = old;
	limit.rlim_cur = count;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return old;
}

static void keeps_threads_whose_files_cannot_be_opened(void **state)
{
	pid_t pid = start_child();
	struct sampled_process *process = sampling_add_process(&sampling, pid);
	struct rlimit old;
	bool is_listed;

	(void)state;
	assert_non_null(process);
	assert_true(sampling_list_threads(&sampling, process));
	old = limit_files(0);
	observe_thread(&sampling, process, process->threads[0]);
	is_listed = sampling_list_threads(&sampling, process);
	process_tree_sweep(&sampling);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_false(is_listed);
	assert_int_equal(sampling.lost_observations, 2);
	assert_ptr_equal(process_table_find(&sampling.processes, pid), process);
	assert_int_equal(process->thread_count, 1);
	assert_false(process->threads[0]->has_ended);
	end_child(pid);
}

static void sweeps_processes_that_ended(void **state)
{
	pid_t pid = start_child();
	struct sampled_process *process = sampling_add_process(&sampling, pid);

	(void)state;
	assert_non_null(process);
	sampling_list_threads(&sampling, process);
	end_child(pid);
	observe_thread(&sampling, process, process->threads[0]);
	assert_true(process->threads[0]->has_ended);
	process_tree_sweep(&sampling);
	assert_null(process_table_find(&sampling.processes, pid));
	assert_int_equal(sampling.lost_observations, 0);
}

static void starts_a_process_that_is_found_again_at_now(void **state)
{
	pid_t pid = start_child();
	struct sampled_process *process = sampling_add_process(&sampling, pid);
	uint64_t now_ns;

	(void)state;
	assert_non_null(process);
	assert_false(process->has_past);
	sampling.ended[7] = (struct ended_process){pid, process->start_ticks};
	sampling_end_process(&sampling, process);
	now_ns = monotonic_ns();
	process = sampling_add_process(&sampling, pid);
	assert_true(process->has_past);
	assert_true(process->start_ns >= now_ns);
	/* Another process with the same id. */
	sampling.ended[7].start_ticks--;
	sampling_end_process(&sampling, process);
	process = sampling_add_process(&sampling, pid);
	assert_false(process->has_past);
	end_child(pid);
}

static void reads_ids_that_two_parts_share(void **state)
{
	pid_t pids[] = {start_child(), start_child()}, id = 0;
	char text[64];
	size_t length = (size_t)snprintf(text, sizeof(text), "%d %d ", pids[0], pids[1]);

	(void)state;
	for (size_t split = 0; split <= length; split++) {
		process_tree_add_listed(&sampling, text, split, &id);
		process_tree_add_listed(&sampling, text + split, length - split, &id);
		assert_int_equal(id, 0);
		assert_int_equal(sampling.processes.count, 2);
		for (size_t i = 0; i < 2; i++)
			sampling_end_process(&sampling,
					     process_table_find(&sampling.processes, pids[i]));
	}
	end_child(pids[0]);
	end_child(pids[1]);
}

/* The kernel returns a page at most for each read: about 700 ids. */
static void finds_all_of_many_children(void **state)
{
	pid_t pids[MANY_CHILDREN];
	struct process_tree tree;
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < MANY_CHILDREN; i++)
		pids[i] = start_child();
	process_tree_open(&tree);
	assert_non_null(sampling_add_process(&sampling, getpid()));
	process_tree_begin(&tree, monotonic_ns());
	process_tree_scan(&tree, &sampling);
	process_tree_close(&tree);
	for (size_t i = 0; i < MANY_CHILDREN; i++) {
		found += process_table_find(&sampling.processes, pids[i]) != NULL;
		end_child(pids[i]);
	}
	assert_int_equal(found, MANY_CHILDREN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_ids_that_two_parts_share, set_up, tear_down),
		cmocka_unit_test_setup_teardown(finds_all_of_many_children, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keeps_threads_whose_files_cannot_be_opened, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(sweeps_processes_that_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(starts_a_process_that_is_found_again_at_now, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
