/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any thread, also in cold paths of callbacks: no lock and no malloc. Counting makes no system
 * call.
 *
 * After mlockall(MCL_FUTURE), reserved but untouched memory would get pages at once: tens of
 * megabytes per thread. So each mapping is unlocked before it can be touched.
 *
 * The last 16 MiB of a limited address space (RLIMIT_AS) are for the program. The tracer can do
 * without more memory, and the program cannot.
 */
#include "inject/memory/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
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

/*
 * The writer's tables and buffers, two threads, code and data, spare thread buffers, and the
 * activity buffers that always exist.
 */
#define BUDGET_FIXED_BYTES (15u << 20)

static atomic_size_t held = BUDGET_FIXED_BYTES;
static atomic_size_t allowed = BUDGET_PROCESS_BYTES;
static atomic_size_t most = BUDGET_FIXED_BYTES;
static atomic_uint_fast64_t refusals;

static void note(size_t bytes)
{
	size_t before = atomic_load(&most);

	while (before < bytes && !atomic_compare_exchange_weak(&most, &before, bytes))
		;
}

bool budget_take(size_t bytes)
{
	size_t now = atomic_load(&held);

	do {
		if (now + bytes > atomic_load(&allowed)) {
			atomic_fetch_add(&refusals, 1);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&held, &now, now + bytes));
	note(now + bytes);
	return true;
}

void budget_give_back(size_t bytes)
{
	atomic_fetch_sub(&held, bytes);
}

void budget_add_thread_buffer(size_t own_bytes)
{
	atomic_fetch_add(&allowed, BUDGET_THREAD_BYTES);
	note(atomic_fetch_add(&held, own_bytes) + own_bytes);
}

uint64_t budget_peak_bytes(void)
{
	return atomic_load(&most);
}

uint64_t budget_refusals(void)
{
	return atomic_load(&refusals);
}

#define PAGE_BYTES 4096

bool read_memory(void *to, uintptr_t from, size_t bytes)
{
	struct iovec local = {.iov_base = to, .iov_len = bytes};
	struct iovec remote = {.iov_base = (void *)from, .iov_len = bytes};
	int saved_errno = errno;
	ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	errno = saved_errno;
	return copied == (ssize_t)bytes;
}

bool read_memory_words(uint64_t *to, const uintptr_t *from, size_t count)
{
	struct iovec local = {.iov_base = to, .iov_len = count * sizeof(*to)};
	struct iovec remote[READ_WORDS_MAX];
	int saved_errno = errno;
	ssize_t copied;

	for (size_t i = 0; i < count; i++)
		remote[i] = (struct iovec){.iov_base = (void *)from[i], .iov_len = sizeof(*to)};
	copied = process_vm_readv(getpid(), &local, 1, remote, count, 0);
	errno = saved_errno;
	return copied == (ssize_t)local.iov_len;
}

size_t read_memory_text(char *out, size_t out_bytes, uintptr_t from)
{
	size_t used = 0;

	/* The page behind the text may be unmapped. */
	while (used + 1 < out_bytes) {
		size_t part = PAGE_BYTES - (from + used) % PAGE_BYTES;

		if (part > out_bytes - 1 - used)
			part = out_bytes - 1 - used;
		if (!read_memory(out + used, from + used, part))
			return 0;
		if (memchr(out + used, '\0', part))
			return strlen(out);
		used += part;
	}
	out[used] = '\0';
	return used;
}
