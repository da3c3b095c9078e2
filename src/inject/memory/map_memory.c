/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/memory/map_memory.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/runtime/clock.h"

#define RECENTLY_NS UINT64_C(100000000)

static atomic_uint_fast64_t failed_ns; /* the last failure; 0: none */

static void *map_unlocked(size_t bytes, int flags, int fd, off_t offset)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory;

	bytes = (bytes + page_bytes - 1) & ~(page_bytes - 1);
	memory = mmap(NULL, bytes + MAP_LEFT_BYTES, PROT_NONE, flags, fd, offset);
	if (memory != MAP_FAILED) {
		munmap(memory + bytes, MAP_LEFT_BYTES);
		munlock(memory, bytes);
		if (!mprotect(memory, bytes, PROT_READ | PROT_WRITE))
			return memory;
		munmap(memory, bytes);
	}
	atomic_store(&failed_ns, monotonic_ns());
	return NULL;
}

void *map_memory(size_t bytes)
{
	return map_unlocked(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void *map_file_part(int fd, uint64_t offset, size_t bytes)
{
	return map_unlocked(bytes, MAP_SHARED, fd, (off_t)offset);
}

bool map_has_failed_lately(void)
{
	uint64_t last_ns = atomic_load(&failed_ns);

	return last_ns && monotonic_ns() - last_ns < RECENTLY_NS;
}
