/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of a child's memory: whole, up to a missing page, in parts, and refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/process_read.h"

#define PAGE_BYTES 4096u

static uint8_t *pages; /* 200, of which the last is not mapped */
#define PAGE_COUNT 200u

static pid_t fork_child(void)
{
	pid_t pid;

	pages = mmap(NULL, PAGE_COUNT * PAGE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	munmap(pages + (PAGE_COUNT - 1) * PAGE_BYTES, PAGE_BYTES);
	for (size_t i = 0; i < PAGE_COUNT - 1; i++)
		pages[i * PAGE_BYTES] = (uint8_t)(i + 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	memset(pages, 0, (PAGE_COUNT - 1) * PAGE_BYTES);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap(pages, (PAGE_COUNT - 1) * PAGE_BYTES);
}

static void reads_until_missing_page(void **unused)
{
	static uint8_t copy[PAGE_COUNT * PAGE_BYTES];
	size_t mapped_bytes = (PAGE_COUNT - 1) * PAGE_BYTES;
	pid_t pid = fork_child();

	(void)unused;
	errno = 77;
	assert_int_equal(process_memory_read_some(pid, copy, (uintptr_t)pages, sizeof(copy)),
			 mapped_bytes);
	for (size_t i = 0; i < PAGE_COUNT - 1; i++)
		assert_int_equal(copy[i * PAGE_BYTES], (uint8_t)(i + 1));
	assert_int_equal(
		process_memory_read_some(pid, copy, (uintptr_t)pages + mapped_bytes - 10, 4000),
		10);
	assert_int_equal(process_memory_read_some(pid, copy, (uintptr_t)pages + mapped_bytes, 4000),
			 0);
	assert_true(process_memory_read(pid, copy, (uintptr_t)pages + PAGE_BYTES, 1));
	assert_int_equal(copy[0], 2);
	assert_false(process_memory_read(pid, copy, (uintptr_t)pages, sizeof(copy)));
	assert_int_equal(process_memory_read_some(pid, copy, UINT64_MAX - 3, 8), 0);
	assert_int_equal(errno, 77);
	end_child(pid);
}

static void reads_parts_or_nothing(void **unused)
{
	uint8_t a = 0, b = 0;
	pid_t pid = fork_child();
	struct process_memory_part parts[] = {
		{&a, (uintptr_t)pages, 1},
		{&b, (uintptr_t)pages + 3 * PAGE_BYTES, 1},
	};

	(void)unused;
	assert_true(process_memory_read_parts(pid, parts, 2));
	assert_int_equal(a, 1);
	assert_int_equal(b, 4);
	parts[1].from = 16;
	assert_false(process_memory_read_parts(pid, parts, 2));
	assert_false(process_memory_read_parts(pid, parts, PROCESS_MEMORY_PARTS_MAX + 1));
	end_child(pid);
}

static void reads_nothing_of_ended_process(void **unused)
{
	uint8_t byte;
	pid_t pid = fork_child();

	(void)unused;
	end_child(pid);
	assert_false(process_memory_read(pid, &byte, (uintptr_t)&byte, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_until_missing_page),
		cmocka_unit_test(reads_parts_or_nothing),
		cmocka_unit_test(reads_nothing_of_ended_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
