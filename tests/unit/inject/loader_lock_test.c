/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork() and the lock that it wants: when it is free, when its holder waits for the thread that forks, when
 * that thread has it already.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/runtime/loader_lock.h"

static pthread_mutex_t forkers = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint had; /* times that the other thread has had the lock */

/* The lock is free in a child: its thread can have it, and whoever forks there. */
static void check_child(void)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		alarm(10);
		loader_lock();
		loader_unlock();
		child = fork();
		if (child)
			_exit(waitpid(child, &status, 0) != child || status);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void *lock_and_wait(void *unused)
{
	loader_lock();
	had++;
	pthread_mutex_lock(&forkers);
	pthread_mutex_unlock(&forkers);
	loader_unlock();
	return unused;
}

static void test_nobody_has_it(void **unused)
{
	(void)unused;
	check_child();
	loader_lock(); /* and in the parent */
	loader_unlock();
}

/* It would wait for ever. The lock stays with its holder. */
static void test_holder_waits(void **unused)
{
	unsigned before = had;
	pthread_t thread;

	(void)unused;
	pthread_mutex_lock(&forkers);
	assert_int_equal(pthread_create(&thread, NULL, lock_and_wait, NULL), 0);
	while (had == before)
		usleep(1000);
	errno = 4711;
	loader_lock_before_fork();
	assert_int_equal(errno, 4711);
	loader_lock_in_parent();
	check_child();
	/* Who waits for the lock gets it from its holder, not from those that forked. */
	pthread_mutex_unlock(&forkers);
	loader_lock();
	assert_int_equal(pthread_join(thread, NULL), 0);
	loader_unlock();
}

/* As in a signal handler that has interrupted its holder. */
static void test_own(void **unused)
{
	unsigned before = had;
	int status = -1;
	pthread_t thread;
	pid_t child;

	(void)unused;
	loader_lock();
	child = fork();
	if (!child) {
		/* What was interrupted goes on here, too, and comes to its end. */
		loader_unlock();
		alarm(10);
		loader_lock();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(pthread_create(&thread, NULL, lock_and_wait, NULL), 0);
	usleep(20000); /* (time enough to be wrong, none is needed to be right) */
	assert_int_equal(had, before);
	loader_unlock();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(had, before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_has_it),
		cmocka_unit_test(test_holder_waits),
		cmocka_unit_test(test_own),
	};

	pthread_atfork(loader_lock_before_fork, loader_lock_in_parent, loader_lock_in_child);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
