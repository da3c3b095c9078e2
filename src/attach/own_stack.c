/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/own_stack.h"

#include <stddef.h>

#include "sampler/process_read.h"

#define BLOCK_BYTES	  4096	/* more than struct pthread of any glibc */
#define ABOVE_BLOCK_MAX	  16384 /* from the thread's block to the upper end of the stack */
#define STACK_BYTES_LIMIT (UINT64_C(1) << 40)

/*
 * In struct pthread of glibc 2.4 and later, these words follow each other: lowest address, size,
 * and size of the guard at the lowest address. Their place differs, but no other words fit: the
 * range contains the stack pointer and ends just above the thread's block.
 */
static bool is_stack(const uint64_t words[3], uint64_t thread_block, uint64_t stack_pointer)
{
	uint64_t start = words[0], bytes = words[1], guard_bytes = words[2];

	return start && bytes < STACK_BYTES_LIMIT && guard_bytes < bytes &&
	       start + guard_bytes <= stack_pointer && stack_pointer < thread_block &&
	       start + bytes > thread_block && start + bytes - thread_block <= ABOVE_BLOCK_MAX;
}

bool own_stack_find(pid_t pid, uint64_t thread_block, uint64_t stack_pointer, uint64_t *lowest)
{
	uint64_t words[BLOCK_BYTES / sizeof(uint64_t)];
	size_t count =
		process_memory_read_some(pid, words, thread_block, sizeof(words)) / sizeof(*words);

	for (size_t i = 0; i + 3 <= count; i++)
		if (is_stack(words + i, thread_block, stack_pointer)) {
			*lowest = words[i] + words[i + 2];
			return true;
		}
	return false;
}
