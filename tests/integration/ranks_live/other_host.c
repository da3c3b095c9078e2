/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a process believe that it runs on another host. Loaded with LD_PRELOAD:
 *
 *	XTRACE_TEST_HOST=NAME		its name; also makes a boot id
 *	XTRACE_TEST_CLOCK=OFFSET:DRIFT	nanoseconds to add to the realtime clock, and the drift in
 *					parts per billion of CLOCK_MONOTONIC
 *
 * The monotonic clock stays the machine's.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define EXPORT	   __attribute__((visibility("default")))
#define NS_PER_S   1000000000LL
#define BOOT_ID	   "/proc/sys/kernel/random/boot_id"
#define HASH_START 14695981039346656037ull
#define HASH_PRIME 1099511628211ull

static long long ns_of(clockid_t clock)
{
	struct timespec time;

	syscall(SYS_clock_gettime, clock, &time);
	return (long long)time.tv_sec * NS_PER_S + time.tv_nsec;
}

/* Returns how far this host's realtime clock is ahead of the true one now. */
static long long shift_ns(void)
{
	const char *text = getenv("XTRACE_TEST_CLOCK");
	long long offset_ns = 0, drift_ppb = 0;

	if (!text || sscanf(text, "%lld:%lld", &offset_ns, &drift_ppb) != 2)
		return 0;
	return offset_ns +
	       (long long)((double)ns_of(CLOCK_MONOTONIC) * (double)drift_ppb / (double)NS_PER_S);
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);
	long long shifted_ns;

	if (result || clock != CLOCK_REALTIME)
		return result;
	shifted_ns = (long long)time->tv_sec * NS_PER_S + time->tv_nsec + shift_ns();
	time->tv_sec = (time_t)(shifted_ns / NS_PER_S);
	time->tv_nsec = (long)(shifted_ns % NS_PER_S);
	return 0;
}

EXPORT int uname(struct utsname *names)
{
	const char *name = getenv("XTRACE_TEST_HOST");
	int result = (int)syscall(SYS_uname, names);

	if (!result && name)
		snprintf(names->nodename, sizeof(names->nodename), "%s", name);
	return result;
}

EXPORT int gethostname(char *name, size_t bytes)
{
	struct utsname names;

	if (uname(&names))
		return -1;
	snprintf(name, bytes, "%s", names.nodename);
	return 0;
}

static int open_boot_id(const char *name)
{
	unsigned long long hash = HASH_START;
	int file = memfd_create("boot_id", MFD_CLOEXEC);

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * HASH_PRIME;
	if (file >= 0) {
		dprintf(file, "%08llx-0000-4000-8000-%012llx\n", hash >> 32, hash & 0xffffffffffff);
		lseek(file, 0, SEEK_SET);
	}
	return file;
}

EXPORT int open(const char *path, int flags, ...)
{
	const char *name = getenv("XTRACE_TEST_HOST");
	mode_t mode = 0;
	va_list list;

	if (name && !strcmp(path, BOOT_ID))
		return open_boot_id(name);
	va_start(list, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(list, mode_t);
	va_end(list);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
