/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded. While the file XT_DISK_FAULT exists, writes to snapshots are slow or fail. They are
 * slow if it is empty, and fail as on a full disk otherwise.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int is_full(int fd)
{
	const char *fault = getenv("XT_DISK_FAULT");
	char link[64], path[4096];
	struct stat status;
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	if (!strstr(path, "/snapshots/") || !fault || stat(fault, &status))
		return 0;
	if (!status.st_size)
		nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	return status.st_size > 0;
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *data, size_t bytes,
						      off_t offset)
{
	static ssize_t (*real)(int, const void *, size_t, off_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pwrite");
	if (is_full(fd)) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, data, bytes, offset);
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *data, size_t bytes,
							off_t offset)
{
	return pwrite(fd, data, bytes, offset);
}
