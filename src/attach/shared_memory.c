/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/shared_memory.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/thread_files.h"

#define COMPARISONS 5 /* of counters that may change meanwhile */

/* Reads the counters of the memory. Returns the number of bytes. */
static ssize_t read_counters(pid_t pid, char out[128])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	return proc_file_read(path, out, 128);
}

/*
 * Containers often forbid kcmp(). Memory that is shared has the same counters in both processes.
 * After fork() they differ, because the child does not have the pages of files.
 */
static bool has_same_counters(pid_t pid, pid_t other)
{
	char own[128], theirs[128], again[128];
	ssize_t bytes;

	for (int i = 0; i < COMPARISONS; i++) {
		bytes = read_counters(pid, own);
		if (bytes <= 0 || read_counters(other, theirs) <= 0 ||
		    read_counters(pid, again) <= 0)
			return false;
		if (!strcmp(own, theirs) && strncmp(own, "0 ", 2) != 0)
			return true;
		if (!strcmp(own, again))
			return false;
	}
	return false;
}

static bool shares(pid_t pid, pid_t other)
{
	long order = syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0);

	/* -1 is an error: of this pair if the other process may not be looked at or has ended. */
	return !order || (order < 0 && syscall(SYS_kcmp, pid, pid, KCMP_VM, 0, 0) < 0 &&
			  has_same_counters(pid, other));
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
