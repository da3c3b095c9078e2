/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of stacks, as this C library keeps them.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/candidates.h"

#define STACK_BYTES 262144

static void *heap_stack;

static uint64_t thread_block(void)
{
	uint64_t block;

	__asm__("movq %%fs:0, %0" : "=r"(block));
	return block;
}

/* The result is compared with what the C library says. */
static void *look(void *unused)
{
	pthread_attr_t attributes;
	uint64_t lowest = 0, here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	size_t bytes;
	void *start;

	(void)unused;
	if (!own_stack_find(getpid(), thread_block(), here, &lowest) ||
	    pthread_getattr_np(pthread_self(), &attributes) ||
	    pthread_attr_getstack(&attributes, &start, &bytes))
		return NULL;
	pthread_attr_destroy(&attributes);
	return (void *)(uintptr_t)(lowest == (uint64_t)(uintptr_t)start);
}

static void *look_elsewhere(void *unused)
{
	uint64_t lowest = 0, there = (uint64_t)(uintptr_t)heap_stack + 4096;

	(void)unused;
	return (void *)(uintptr_t)!own_stack_find(getpid(), thread_block(), there, &lowest);
}

static bool is_true_in(void *(*routine)(void *), const pthread_attr_t *attributes)
{
	void *result = NULL;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, attributes, routine, NULL), 0);
	pthread_join(thread, &result);
	return result != NULL;
}

static void finds_the_lowest_address(void **unused)
{
	pthread_attr_t attributes;

	(void)unused;
	pthread_attr_init(&attributes);
	assert_true(is_true_in(look, NULL));
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	assert_true(is_true_in(look, &attributes));
	pthread_attr_setguardsize(&attributes, 65536);
	assert_true(is_true_in(look, &attributes));
	pthread_attr_setguardsize(&attributes, 0);
	assert_true(is_true_in(look, &attributes));
	pthread_attr_setstack(&attributes, heap_stack, STACK_BYTES);
	assert_true(is_true_in(look, &attributes));
	pthread_attr_destroy(&attributes);
}

static void rejects_other_stacks(void **unused)
{
	(void)unused;
	assert_true(is_true_in(look_elsewhere, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_lowest_address),
		cmocka_unit_test(rejects_other_stacks),
	};
	int failed;

	heap_stack = aligned_alloc(65536, STACK_BYTES);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(heap_stack);
	return failed;
}
