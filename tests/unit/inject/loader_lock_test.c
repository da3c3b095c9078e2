/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork() and its lock: free, held by a thread that waits for the forking one, and held by the
 * forking thread.
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

#include "inject/runtime/loader.h"

static pthread_mutex_t forkers = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint had; /* times that the other thread took the lock */

/* The lock is free in a child, which can take it and fork again. */
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

static void takes_free_lock(void **unused)
{
	(void)unused;
	check_child();
	loader_lock(); /* free in the parent too */
	loader_unlock();
}

/* fork() must not wait: that would deadlock. The holder keeps the lock. */
static void does_not_wait_for_blocked_holder(void **unused)
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
	/* A waiting thread gets the lock from its holder, not from the forking threads. */
	pthread_mutex_unlock(&forkers);
	loader_lock();
	assert_int_equal(pthread_join(thread, NULL), 0);
	loader_unlock();
}

/* Simulates a signal handler that interrupts the holder. */
static void keeps_own_lock(void **unused)
{
	unsigned before = had;
	int status = -1;
	pthread_t thread;
	pid_t child;

	(void)unused;
	loader_lock();
	child = fork();
	if (!child) {
		/* The interrupted code continues in the child too. */
		loader_unlock();
		alarm(10);
		loader_lock();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(pthread_create(&thread, NULL, lock_and_wait, NULL), 0);
	usleep(20000); /* time to go wrong; a correct program needs none */
	assert_int_equal(had, before);
	loader_unlock();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(had, before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_free_lock),
		cmocka_unit_test(does_not_wait_for_blocked_holder),
		cmocka_unit_test(keeps_own_lock),
	};

	pthread_atfork(loader_lock_before_fork, loader_lock_in_parent, loader_lock_in_child);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
