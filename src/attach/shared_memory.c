/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/shared_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHANGES		 10
#define DUMPS_SHARED_DAX 0x100UL /* few programs have such memory */

/* Opens the filter of core dumps. It belongs to the memory, not to the process. */
static int open_filter(pid_t pid, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/coredump_filter", (int)pid);
	return open(path, flags | O_CLOEXEC);
}

static bool read_filter(int fd, unsigned long *out)
{
	char text[32] = "";

	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return false;
	*out = strtoul(text, NULL, 16);
	return true;
}

/*
 * Containers often forbid kcmp(). A change of the filter appears in all processes that share the
 * memory. After fork(), each has its own filter, although addresses and counters may be the same.
 * Several changes, because another xtrace attach may change the other process meanwhile. Restores
 * the filter. False if it cannot be changed.
 */
static bool has_same_filter(pid_t pid, pid_t other)
{
	int own = open_filter(pid, O_RDWR), theirs = open_filter(other, O_RDONLY);
	unsigned long filter, seen;
	bool is_same = read_filter(own, &filter);

	for (int i = 0; i < CHANGES && is_same; i++) {
		unsigned long next = i % 2 ? filter : filter ^ DUMPS_SHARED_DAX;

		is_same = dprintf(own, "%#lx", next) > 0 && read_filter(theirs, &seen) &&
			  seen == next;
		if (!is_same)
			dprintf(own, "%#lx", filter);
	}
	if (own >= 0)
		close(own);
	if (theirs >= 0)
		close(theirs);
	return is_same;
}

static bool shares(pid_t pid, pid_t other)
{
	long order = syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0);

	/* -1 is an error: of this pair if the other process may not be looked at or has ended. */
	return !order || (order < 0 && syscall(SYS_kcmp, pid, pid, KCMP_VM, 0, 0) < 0 &&
			  has_same_filter(pid, other));
}

pid_t shared_memory_find(pid_t pid)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (folder && !found && (entry = readdir(folder))) {
		pid_t other = (pid_t)atoi(entry->d_name);

		if (other > 0 && other != pid && shares(pid, other))
			found = other;
	}
	if (folder)
		closedir(folder);
	return found;
}
