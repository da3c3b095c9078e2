/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each step fills memory that the kernel has to provide first. Good: the memory is mapped once, and
 * each step fills it again.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "idle.h"

#define BUFFER_BYTES (32 << 20)
#define PAGE_BYTES   4096

static char *map_buffer(void)
{
	char *buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (buffer == MAP_FAILED)
		exit(1);
	madvise(buffer, BUFFER_BYTES, MADV_NOHUGEPAGE);
	return buffer;
}

STACK_FRAME static void touch_pages(char *buffer)
{
	for (size_t at = 0; at < BUFFER_BYTES; at += PAGE_BYTES)
		buffer[at] = 1;
}

STACK_FRAME static void fill_fresh_buffers(void) /* cause */
{
	uint64_t end = now_ns() + STEP_NS;

	do {
		char *buffer = map_buffer();

		touch_pages(buffer);
		munmap(buffer, BUFFER_BYTES);
	} while (now_ns() < end);
}

int main(int argc, char **argv)
{
	struct pattern p;
	char *buffer;

	pattern_begin(&p, argc, argv);
	buffer = map_buffer();
	touch_pages(buffer);
	for (int step = 0; step < STEPS; step++) {
		if (p.is_bad)
			fill_fresh_buffers();
		else
			touch_pages(buffer);
		idle_launch(&p);
	}
	return pattern_end(&p);
}
