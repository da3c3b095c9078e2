/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/wait_class.h"

#include <stddef.h>

#include "log/base/new_syscalls.h"

#define FIXED(what)                                                                                \
	{                                                                                          \
		WAIT_FIXED, 0, what                                                                \
	}
#define BY(subject, argument, otherwise)                                                           \
	{                                                                                          \
		subject, argument, otherwise                                                       \
	}

static const struct wait_rule rules[] = {
	[SYS_read] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_write] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_readv] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_writev] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_pread64] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_pwrite64] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_preadv] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_pwritev] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_preadv2] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_pwritev2] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_recvfrom] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_recvmsg] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_recvmmsg] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_sendto] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_sendmsg] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_sendmmsg] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_accept] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_accept4] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_connect] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_ioctl] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_BLOCKED),
	[SYS_splice] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_tee] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_vmsplice] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	/* The descriptor that is read or written second usually is the slow one. */
	[SYS_sendfile] = BY(WAIT_DESCRIPTOR, 0, XT_CPU_IO),
	[SYS_copy_file_range] = FIXED(XT_CPU_IO),
	[SYS_fsync] = FIXED(XT_CPU_IO),
	[SYS_fdatasync] = FIXED(XT_CPU_IO),
	[SYS_sync] = FIXED(XT_CPU_IO),
	[SYS_syncfs] = FIXED(XT_CPU_IO),
	[SYS_sync_file_range] = FIXED(XT_CPU_IO),
	[SYS_msync] = FIXED(XT_CPU_IO),
	[SYS_openat] = FIXED(XT_CPU_IO),
	[SYS_openat2] = FIXED(XT_CPU_IO),
	[SYS_close] = FIXED(XT_CPU_IO),
	[SYS_fstat] = FIXED(XT_CPU_IO),
	[SYS_newfstatat] = FIXED(XT_CPU_IO),
	[SYS_statx] = FIXED(XT_CPU_IO),
	[SYS_faccessat] = FIXED(XT_CPU_IO),
	[SYS_faccessat2] = FIXED(XT_CPU_IO),
	[SYS_readlinkat] = FIXED(XT_CPU_IO),
	[SYS_getdents64] = FIXED(XT_CPU_IO),
	[SYS_renameat] = FIXED(XT_CPU_IO),
	[SYS_renameat2] = FIXED(XT_CPU_IO),
	[SYS_unlinkat] = FIXED(XT_CPU_IO),
	[SYS_mkdirat] = FIXED(XT_CPU_IO),
	[SYS_truncate] = FIXED(XT_CPU_IO),
	[SYS_ftruncate] = FIXED(XT_CPU_IO),
	[SYS_fallocate] = FIXED(XT_CPU_IO),
	[SYS_readahead] = FIXED(XT_CPU_IO),
	[SYS_io_getevents] = FIXED(XT_CPU_IO),
	[SYS_io_pgetevents] = FIXED(XT_CPU_IO),
	[SYS_io_submit] = FIXED(XT_CPU_IO),
	[SYS_io_uring_enter] = FIXED(XT_CPU_IO),
	[SYS_execve] = FIXED(XT_CPU_IO),
	[SYS_execveat] = FIXED(XT_CPU_IO),
	[SYS_nanosleep] = FIXED(XT_CPU_SLEEP),
	[SYS_clock_nanosleep] = FIXED(XT_CPU_SLEEP),
	[SYS_ppoll] = BY(WAIT_DESCRIPTORS, 0, XT_CPU_BLOCKED),
	[SYS_pselect6] = BY(WAIT_SETS, 0, XT_CPU_BLOCKED),
	[SYS_epoll_pwait] = BY(WAIT_EPOLL, 0, XT_CPU_BLOCKED),
	[SYS_epoll_pwait2] = BY(WAIT_EPOLL, 0, XT_CPU_BLOCKED),
	[SYS_futex] = BY(WAIT_FUTEX, 0, XT_CPU_LOCK),
	[SYS_futex_wait] = BY(WAIT_FUTEX, 0, XT_CPU_LOCK),
	[SYS_flock] = FIXED(XT_CPU_LOCK),
	[SYS_fcntl] = FIXED(XT_CPU_LOCK),
	[SYS_semop] = FIXED(XT_CPU_LOCK),
	[SYS_semtimedop] = FIXED(XT_CPU_LOCK),
	[SYS_membarrier] = FIXED(XT_CPU_LOCK),
	/* Other threads hold the lock of the address space. */
	[SYS_mmap] = FIXED(XT_CPU_LOCK),
	[SYS_munmap] = FIXED(XT_CPU_LOCK),
	[SYS_mprotect] = FIXED(XT_CPU_LOCK),
	[SYS_mremap] = FIXED(XT_CPU_LOCK),
	[SYS_madvise] = FIXED(XT_CPU_LOCK),
	[SYS_brk] = FIXED(XT_CPU_LOCK),
	[SYS_wait4] = BY(WAIT_CHILD, 0, XT_CPU_PROCESS),
	[SYS_waitid] = BY(WAIT_CHILD, 1, XT_CPU_PROCESS),
	[SYS_clone] = BY(WAIT_CHILD, 0, XT_CPU_PROCESS),
	[SYS_clone3] = BY(WAIT_CHILD, 0, XT_CPU_PROCESS),
	[SYS_msgrcv] = FIXED(XT_CPU_PROCESS),
	[SYS_msgsnd] = FIXED(XT_CPU_PROCESS),
	[SYS_mq_timedreceive] = FIXED(XT_CPU_PROCESS),
	[SYS_mq_timedsend] = FIXED(XT_CPU_PROCESS),
	[SYS_rt_sigtimedwait] = FIXED(XT_CPU_PROCESS),
#if defined(__x86_64__)
	/* Later architectures have only the general forms of these. */
	[SYS_open] = FIXED(XT_CPU_IO),
	[SYS_creat] = FIXED(XT_CPU_IO),
	[SYS_stat] = FIXED(XT_CPU_IO),
	[SYS_lstat] = FIXED(XT_CPU_IO),
	[SYS_access] = FIXED(XT_CPU_IO),
	[SYS_readlink] = FIXED(XT_CPU_IO),
	[SYS_getdents] = FIXED(XT_CPU_IO),
	[SYS_rename] = FIXED(XT_CPU_IO),
	[SYS_unlink] = FIXED(XT_CPU_IO),
	[SYS_mkdir] = FIXED(XT_CPU_IO),
	[SYS_rmdir] = FIXED(XT_CPU_IO),
	[SYS_poll] = BY(WAIT_DESCRIPTORS, 0, XT_CPU_BLOCKED),
	[SYS_select] = BY(WAIT_SETS, 0, XT_CPU_BLOCKED),
	[SYS_epoll_wait] = BY(WAIT_EPOLL, 0, XT_CPU_BLOCKED),
	[SYS_vfork] = BY(WAIT_CHILD, 0, XT_CPU_PROCESS),
#endif
};

static const enum xt_cpu_state states_of_descriptors[DESCRIPTOR_KINDS] = {
	[DESCRIPTOR_UNKNOWN] = XT_CPU_BLOCKED, [DESCRIPTOR_FILE] = XT_CPU_IO,
	[DESCRIPTOR_TERMINAL] = XT_CPU_IO,     [DESCRIPTOR_GPU] = XT_CPU_BLOCKED,
	[DESCRIPTOR_PIPE] = XT_CPU_PROCESS,    [DESCRIPTOR_LOCAL_SOCKET] = XT_CPU_PROCESS,
	[DESCRIPTOR_SOCKET] = XT_CPU_IO,       [DESCRIPTOR_EVENT] = XT_CPU_LOCK,
	[DESCRIPTOR_TIMER] = XT_CPU_SLEEP,     [DESCRIPTOR_EPOLL] = XT_CPU_BLOCKED,
	[DESCRIPTOR_PROCESS] = XT_CPU_PROCESS, [DESCRIPTOR_OTHER] = XT_CPU_BLOCKED,
};

/*
 * Event loops add an eventfd, a timer or a pipe to themselves to what they really wait for. So the
 * state with the highest number here counts.
 */
static const uint8_t weights_of_states[XT_CPU_STATES] = {
	[XT_CPU_BLOCKED] = 1, [XT_CPU_SLEEP] = 2, [XT_CPU_LOCK] = 3,
	[XT_CPU_PROCESS] = 4, [XT_CPU_IO] = 5,
};

const struct wait_rule *wait_rule_find(long number)
{
	const struct wait_rule *rule;

	if (number < 0 || (size_t)number >= sizeof(rules) / sizeof(rules[0]))
		return NULL;
	rule = &rules[number];
	return rule->state == XT_CPU_UNKNOWN ? NULL : rule;
}

enum xt_cpu_state wait_state_of_descriptors(const enum descriptor_kind *kinds, uint32_t count)
{
	enum xt_cpu_state best = count ? XT_CPU_BLOCKED : XT_CPU_SLEEP;

	for (uint32_t i = 0; i < count; i++) {
		enum xt_cpu_state state = states_of_descriptors[kinds[i]];

		if (weights_of_states[state] > weights_of_states[best])
			best = state;
	}
	return best;
}

enum xt_cpu_state wait_state_outside_calls(char proc_state)
{
	/* Only a page fault sleeps uninterruptibly there; S is a signal stop or a debugger. */
	return proc_state == 'D' ? XT_CPU_PAGE_FAULT : XT_CPU_BLOCKED;
}

enum xt_cpu_state wait_state_uninterruptible(enum xt_cpu_state state)
{
	/* A futex word or an argument of a call can be on a page that is not in memory. */
	return state == XT_CPU_BLOCKED || state == XT_CPU_SLEEP ? XT_CPU_IO : state;
}
