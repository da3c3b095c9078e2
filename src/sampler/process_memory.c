/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of another process's memory by process_vm_readv. Any thread; keeps errno. Never stops the
 * process.
 */
#include "sampler/process_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sampler/thread_files.h"

#define PAGE_BYTES  UINT64_C(4096)
#define PAGES_BATCH 64

/*
 * One part for each page: the kernel need not return what precedes a missing page within a part
 * (process_vm_readv(2)).
 */
static size_t split_into_pages(struct iovec *pages, uint64_t from, size_t bytes)
{
	size_t count = 0;

	while (bytes && count < PAGES_BATCH) {
		size_t part = PAGE_BYTES - (from & (PAGE_BYTES - 1));

		if (part > bytes)
			part = bytes;
		pages[count++] = (struct iovec){(void *)(uintptr_t)from, part};
		from += part;
		bytes -= part;
	}
	return count;
}

size_t process_memory_read_some(pid_t pid, void *to, uint64_t from, size_t bytes)
{
	struct iovec pages[PAGES_BATCH];
	int saved_errno = errno;
	size_t done = 0;

	if (from + bytes < from)
		return 0;
	while (done < bytes) {
		struct iovec local = {(char *)to + done, bytes - done};
		size_t count = split_into_pages(pages, from + done, bytes - done), wanted = 0;
		ssize_t got;

		for (size_t i = 0; i < count; i++)
			wanted += pages[i].iov_len;
		got = process_vm_readv(pid, &local, 1, pages, count, 0);
		if (got <= 0)
			break;
		done += (size_t)got;
		if ((size_t)got < wanted)
			break;
	}
	errno = saved_errno;
	return done;
}

bool process_memory_read(pid_t pid, void *to, uint64_t from, size_t bytes)
{
	return process_memory_read_some(pid, to, from, bytes) == bytes;
}

/* A number in a file of /proc, after this text. -1: none. */
static int number_in(const char *path, const char *before)
{
	char text[4096];
	const char *place;

	if (proc_file_read(path, text, sizeof(text)) <= 0)
		return -1;
	place = strstr(text, before);
	return place ? atoi(place + strlen(before)) : -1;
}

/* Whether this process may use the system call, on its own memory. */
static bool can_read_itself(void)
{
	char from = 1, to = 0;
	struct iovec local = {&to, 1}, remote = {&from, 1};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

bool process_memory_is_refused(pid_t pid, uint64_t address)
{
	char byte;
	struct iovec local = {&byte, 1}, remote = {(void *)(uintptr_t)address, 1};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) != 1 &&
	       (errno == EPERM || errno == ENOSYS);
}

void process_memory_explain(pid_t pid, uint64_t address, char *why, size_t why_bytes)
{
	int scope = number_in("/proc/sys/kernel/yama/ptrace_scope", "");

	why[0] = '\0';
	if (!process_memory_is_refused(pid, address))
		return;
	if (!can_read_itself())
		snprintf(why, why_bytes,
			 "the container forbids process_vm_readv; docker run --cap-add SYS_PTRACE "
			 "allows it");
	else if (scope > 1)
		snprintf(why, why_bytes, "kernel.yama.ptrace_scope is %d; %s allows it", scope,
			 scope > 2 ? "a restart with ptrace_scope 1"
				   : "'sysctl kernel.yama.ptrace_scope=1'");
	else if (scope == 1)
		snprintf(why, why_bytes,
			 "kernel.yama.ptrace_scope is 1, so only a parent may read it; "
			 "'sysctl kernel.yama.ptrace_scope=0' allows it");
	else
		snprintf(why, why_bytes, "the process belongs to another user, or is protected");
}

bool process_memory_read_parts(pid_t pid, const struct process_memory_part *parts, size_t count)
{
	struct iovec local[PROCESS_MEMORY_PARTS_MAX], remote[PROCESS_MEMORY_PARTS_MAX];
	int saved_errno = errno;
	size_t wanted = 0;
	ssize_t got;

	if (count > PROCESS_MEMORY_PARTS_MAX)
		return false;
	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){parts[i].to, parts[i].bytes};
		remote[i] = (struct iovec){(void *)(uintptr_t)parts[i].from, parts[i].bytes};
		wanted += parts[i].bytes;
	}
	got = process_vm_readv(pid, local, count, remote, count, 0);
	errno = saved_errno;
	return got >= 0 && (size_t)got == wanted;
}
