/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps memory for the tracer. Any thread; system calls, no lock and no malloc.
 *
 * After mlockall(MCL_FUTURE), reserved but untouched memory would get pages at once: tens of
 * megabytes per thread. So each mapping is unlocked before it can be touched.
 *
 * The last 16 MiB of a limited address space (RLIMIT_AS) are for the program. The tracer can do
 * without more memory, and the program cannot.
 */
#ifndef XT_INJECT_MAP_MEMORY_H
#define XT_INJECT_MAP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_LEFT_BYTES (16u << 20) /* mapped beyond each request, and given back */

/* Private, zeroed memory that gets pages when touched. NULL if there is no room; errno says why. */
void *map_memory(size_t bytes);

/* A part of a file, shared. */
void *map_file_part(int fd, uint64_t offset, size_t bytes);

/* Whether a mapping failed a short time ago. Callers that can do without memory then do not try. */
bool map_has_failed_lately(void);

#endif
