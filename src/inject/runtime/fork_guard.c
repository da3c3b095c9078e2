/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By the pid, and by a page that the kernel empties in a child: a process that is the first of its pid
 * namespace and makes another namespace has a child with the same pid. Any thread; no lock.
 */
#include "inject/runtime/fork_guard.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static const atomic_bool always = true;
static const atomic_bool *mark =
	&always;  /* where the kernel (before 4.14) or memory does not serve */
static pid_t pid; /* 0: none */

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
