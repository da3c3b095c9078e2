/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the tracer's own. Any thread; system calls, no lock and no malloc.
 *
 * A program may have said that all memory to come is to be locked, mlockall(MCL_FUTURE): then what is only reserved here,
 * and never touched, would take pages at once, tens of megabytes for each thread. So each mapping is unlocked before it
 * can be touched.
 */
#ifndef XT_INJECT_MAP_MEMORY_H
#define XT_INJECT_MAP_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* NULL: there is no room; errno says why. */
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

/* Zeroes, private, which take pages as they are touched. */
static inline void *map_memory(size_t bytes)
{
	return map_unlocked(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* A part of that file, shared. */
static inline void *map_file_part(int fd, uint64_t offset, size_t bytes)
{
	return map_unlocked(bytes, MAP_SHARED, fd, (off_t)offset);
}

#endif
