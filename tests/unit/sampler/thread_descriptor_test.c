/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's descriptor of a thread has the thread's tid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/python_frames.h"

/* The tid by the descriptor, or -1 if it is not one. */
static int32_t own_tid(void)
{
	uintptr_t self = (uintptr_t)pthread_self();
	const uint8_t *bytes = (const uint8_t *)self;

	return thread_descriptor_is_valid(bytes, self) ? thread_descriptor_tid(bytes) : -1;
}

static void *is_right(void *out)
{
	*(bool *)out = own_tid() == gettid();
	return NULL;
}

static void finds_tid_of_each_thread(void **unused)
{
	bool is_right_there = false;
	pthread_t thread;

	(void)unused;
	assert_int_equal(own_tid(), gettid());
	assert_int_equal(pthread_create(&thread, NULL, is_right, &is_right_there), 0);
	pthread_join(thread, NULL);
	assert_true(is_right_there);
}

static void finds_tid_after_fork(void **unused)
{
	pid_t child = fork();
	int status;

	(void)unused;
	if (!child)
		_exit(own_tid() != getpid());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void rejects_other_memory(void **unused)
{
	static const uint8_t zeros[THREAD_DESCRIPTOR_BYTES];
	uint8_t ones[THREAD_DESCRIPTOR_BYTES];

	(void)unused;
	memset(ones, 0xff, sizeof(ones));
	assert_false(thread_descriptor_is_valid(zeros, (uintptr_t)zeros));
	assert_false(thread_descriptor_is_valid(ones, (uintptr_t)ones));
	assert_int_equal(thread_descriptor_tid(ones), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_tid_of_each_thread),
		cmocka_unit_test(finds_tid_after_fork),
		cmocka_unit_test(rejects_other_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
