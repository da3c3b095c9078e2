/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps memory for the tracer. Any thread; system calls, no lock and no malloc.
 *
 * After mlockall(MCL_FUTURE), reserved but untouched memory would get pages at once: tens of
 * megabytes per thread. So each mapping is unlocked before it can be touched.
 */
#ifndef XT_INJECT_MAP_MEMORY_H
#define XT_INJECT_MAP_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* NULL if there is no room; errno says why. */
static inline void *map_unlocked(size_t bytes, int flags, int fd, off_t offset)
{
	void *memory = mmap(NULL, bytes, PROT_NONE, flags, fd, offset);

	if (memory == MAP_FAILED)
		return NULL;
	munlock(memory, bytes);
	if (!mprotect(memory, bytes, PROT_READ | PROT_WRITE))
		return memory;
	munmap(memory, bytes);
	return NULL;
}

/* Private, zeroed memory that gets pages when touched. */
static inline void *map_memory(size_t bytes)
{
	return map_unlocked(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* A part of a file, shared. */
static inline void *map_file_part(int fd, uint64_t offset, size_t bytes)
{
	return map_unlocked(bytes, MAP_SHARED, fd, (off_t)offset);
}

#endif
