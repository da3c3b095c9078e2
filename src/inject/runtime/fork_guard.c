/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the pid and a page that the kernel zeroes in a child. The pid alone is not enough:
 * process 1 of a pid namespace can create a child that is process 1 of another. Any thread; no
 * lock.
 */
#include "inject/runtime/fork_guard.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static const atomic_bool always = true;
static const atomic_bool *mark =
	&always;  /* used if the kernel is older than 4.14 or has no memory */
static pid_t pid; /* 0: not tracing */

void fork_guard_begin(void)
{
	atomic_bool *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pid = getpid();
	if (page == MAP_FAILED)
		return;
	if (madvise(page, sizeof(*page), MADV_WIPEONFORK)) {
		munmap(page, sizeof(*page));
		return;
	}
	atomic_store(page, true);
	mark = page;
}

void fork_guard_abandon(void)
{
	pid = 0;
	mark = &always;
}

bool is_own_process(void)
{
	return !pid || (atomic_load(mark) && getpid() == pid);
}
