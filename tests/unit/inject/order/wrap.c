/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of the product's code, with effects that each execution can repeat. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/memory/memory.h"
#include "scenarios.h"

uint8_t scenario_area[SCENARIO_AREA_BYTES] __attribute__((aligned(4096)));
static bool area_is_used;

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *pages, size_t bytes);
int __wrap_madvise(void *pages, size_t bytes, int advice);
int __wrap_mprotect(void *pages, size_t bytes, int protection);
int __wrap_open(const char *path, int flags, ...);
int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes);
long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);

/* The first mapping that fits has a known address, so that its orders can be weakened. */
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	(void)at, (void)protection, (void)flags, (void)fd, (void)offset;
	if (bytes > MAP_LEFT_BYTES)
		bytes -= MAP_LEFT_BYTES;
	if (area_is_used || bytes > SCENARIO_AREA_BYTES)
		return explorer_memory(bytes);
	area_is_used = true;
	return scenario_area;
}

int __wrap_munmap(void *pages, size_t bytes)
{
	(void)pages, (void)bytes;
	return 0;
}

/* Fails, like a kernel without MADV_POPULATE_WRITE. */
int __wrap_madvise(void *pages, size_t bytes, int advice)
{
	(void)pages, (void)bytes, (void)advice;
	return -1;
}

int __wrap_mprotect(void *pages, size_t bytes, int protection)
{
	(void)pages, (void)bytes, (void)protection;
	return 0;
}

int __wrap_open(const char *path, int flags, ...)
{
	(void)path, (void)flags;
	return SCENARIO_FD;
}

int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes)
{
	(void)fd, (void)offset, (void)bytes;
	return 0;
}

/* Nothing sleeps. */
long __wrap_syscall(long number, ...)
{
	va_list arguments;
	long a[4];

	if (number == SYS_tgkill && scenario_threads_have_ended) {
		errno = ESRCH;
		return -1;
	}
	if (number == SYS_gettid)
		return 1 + (long)explorer_thread();
	if (number != SYS_madvise && number != SYS_mmap)
		return 0;
	va_start(arguments, number);
	for (unsigned i = 0; i < 4; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	return __real_syscall(number, a[0], a[1], a[2], a[3], -1L, 0L);
}
