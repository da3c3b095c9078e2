/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/wait_class.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "log/base/grow.h"
#include "log/base/new_syscalls.h"
#include "sampler/process_read.h"

#define CALLS(...)                                                                                 \
	(const short[])                                                                            \
	{                                                                                          \
		__VA_ARGS__, -1                                                                    \
	}

/*
 * sendfile() names two descriptors, and the second one is usually the slow one. Calls that change
 * the address space wait while other threads hold its lock.
 */
static const struct {
	struct wait_rule rule;
	const short *calls; /* ended by -1 */
} rules[] = {
	{{WAIT_DESCRIPTOR, 0, XT_CPU_IO},
	 CALLS(SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv,
	       SYS_pwritev, SYS_preadv2, SYS_pwritev2, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
	       SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_accept, SYS_accept4, SYS_connect,
	       SYS_splice, SYS_tee, SYS_vmsplice, SYS_sendfile)},
	{{WAIT_DESCRIPTOR, 0, XT_CPU_BLOCKED}, CALLS(SYS_ioctl)},
	{{WAIT_FIXED, 0, XT_CPU_IO},
	 CALLS(SYS_copy_file_range, SYS_fsync, SYS_fdatasync, SYS_sync, SYS_syncfs,
	       SYS_sync_file_range, SYS_msync, SYS_openat, SYS_openat2, SYS_close, SYS_fstat,
	       SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_faccessat2, SYS_readlinkat,
	       SYS_getdents64, SYS_renameat, SYS_renameat2, SYS_unlinkat, SYS_mkdirat, SYS_truncate,
	       SYS_ftruncate, SYS_fallocate, SYS_readahead, SYS_io_getevents, SYS_io_pgetevents,
	       SYS_io_submit, SYS_io_uring_enter, SYS_execve, SYS_execveat)},
	{{WAIT_FIXED, 0, XT_CPU_SLEEP}, CALLS(SYS_nanosleep, SYS_clock_nanosleep)},
	{{WAIT_DESCRIPTORS, 0, XT_CPU_BLOCKED}, CALLS(SYS_ppoll)},
	{{WAIT_SETS, 0, XT_CPU_BLOCKED}, CALLS(SYS_pselect6)},
	{{WAIT_EPOLL, 0, XT_CPU_BLOCKED}, CALLS(SYS_epoll_pwait, SYS_epoll_pwait2)},
	{{WAIT_FUTEX, 0, XT_CPU_LOCK}, CALLS(SYS_futex, SYS_futex_wait)},
	{{WAIT_FIXED, 0, XT_CPU_LOCK},
	 CALLS(SYS_flock, SYS_fcntl, SYS_semop, SYS_semtimedop, SYS_membarrier, SYS_mmap,
	       SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk)},
	{{WAIT_CHILD, 0, XT_CPU_PROCESS}, CALLS(SYS_wait4, SYS_clone, SYS_clone3)},
	{{WAIT_CHILD, 1, XT_CPU_PROCESS}, CALLS(SYS_waitid)},
	{{WAIT_FIXED, 0, XT_CPU_PROCESS},
	 CALLS(SYS_msgrcv, SYS_msgsnd, SYS_mq_timedreceive, SYS_mq_timedsend, SYS_rt_sigtimedwait)},
#if defined(__x86_64__)
	/* Later architectures have only the general forms of these. */
	{{WAIT_FIXED, 0, XT_CPU_IO},
	 CALLS(SYS_open, SYS_creat, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_getdents,
	       SYS_rename, SYS_unlink, SYS_mkdir, SYS_rmdir)},
	{{WAIT_DESCRIPTORS, 0, XT_CPU_BLOCKED}, CALLS(SYS_poll)},
	{{WAIT_SETS, 0, XT_CPU_BLOCKED}, CALLS(SYS_select)},
	{{WAIT_EPOLL, 0, XT_CPU_BLOCKED}, CALLS(SYS_epoll_wait)},
	{{WAIT_CHILD, 0, XT_CPU_PROCESS}, CALLS(SYS_vfork)},
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
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		for (const short *call = rules[i].calls; *call >= 0; call++)
			if (*call == number)
				return &rules[i].rule;
	return NULL;
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

#define TABLE_AGE_NS	 500000000
#define DESCRIPTORS_MAX	 4096 /* looked at for pipes, per process */
#define EPOLL_TEXT_BYTES 4096

/* The text of a link in /proc/PID/fd, and what it refers to. */
static const struct {
	const char *prefix;
	enum descriptor_kind kind;
} link_kinds[] = {
	{"pipe:", DESCRIPTOR_PIPE},
	{"anon_inode:[eventfd]", DESCRIPTOR_EVENT},
	{"anon_inode:[timerfd]", DESCRIPTOR_TIMER},
	{"anon_inode:[eventpoll]", DESCRIPTOR_EPOLL},
	{"anon_inode:[pidfd]", DESCRIPTOR_PROCESS},
	{"pidfd:", DESCRIPTOR_PROCESS},
	{"anon_inode:", DESCRIPTOR_OTHER},
	{"/dev/nvidia", DESCRIPTOR_GPU},
	{"/dev/kfd", DESCRIPTOR_GPU},
	{"/dev/dri/", DESCRIPTOR_GPU},
};

static enum descriptor_kind kind_of_socket(const char *path)
{
	char name[16];
	ssize_t length = getxattr(path, "system.sockprotoname", name, sizeof(name) - 1);

	if (length <= 0)
		return DESCRIPTOR_SOCKET;
	name[length] = '\0';
	return strncmp(name, "UNIX", 4) ? DESCRIPTOR_SOCKET : DESCRIPTOR_LOCAL_SOCKET;
}

static enum descriptor_kind kind_of_mode(mode_t mode, const char *path)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
		return DESCRIPTOR_FILE;
	case S_IFIFO:
		return DESCRIPTOR_PIPE;
	case S_IFCHR:
		return DESCRIPTOR_TERMINAL;
	case S_IFSOCK:
		return kind_of_socket(path);
	default:
		return DESCRIPTOR_OTHER;
	}
}

/* Asks no server: stat() of a file on a dead file system would hang. */
static bool stat_cached(int folder, const char *name, struct statx *status)
{
	return !statx(folder, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO,
		      status);
}

struct descriptor descriptor_of(pid_t pid, int fd)
{
	struct descriptor out = {0};
	char path[64], link[PATH_MAX];
	struct statx status;
	struct stat own;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	length = readlink(path, link, sizeof(link) - 1);
	if (length < 0 || lstat(path, &own) || !stat_cached(AT_FDCWD, path, &status))
		return out;
	link[length] = '\0';
	out.inode = status.stx_ino;
	out.can_read = own.st_mode & S_IRUSR;
	out.can_write = own.st_mode & S_IWUSR;
	for (size_t i = 0; i < sizeof(link_kinds) / sizeof(link_kinds[0]) && !out.kind; i++)
		if (!strncmp(link, link_kinds[i].prefix, strlen(link_kinds[i].prefix)))
			out.kind = link_kinds[i].kind;
	if (!out.kind)
		out.kind = kind_of_mode(status.stx_mode, path);
	return out;
}

uint32_t descriptors_of_epoll(pid_t pid, int fd, int *out, uint32_t max)
{
	char text[EPOLL_TEXT_BYTES];
	const char *line = text;
	uint32_t count = 0;

	if (proc_file_read(PROC_PATH("%d/fdinfo/%d", pid, fd), text, sizeof(text)) < 0)
		return 0;
	while (count < max && (line = strstr(line, "tfd:"))) {
		line += strlen("tfd:");
		out[count++] = atoi(line);
	}
	return count;
}

static void add_pipe(struct pipe_table *table, int folder, const char *name)
{
	struct statx status;
	struct stat own;

	if (fstatat(folder, name, &own, AT_SYMLINK_NOFOLLOW) ||
	    !stat_cached(folder, name, &status) || !S_ISFIFO(status.stx_mode) ||
	    grow(table->ends, table->capacity, table->count + 1))
		return;
	table->ends[table->count++] = (struct descriptor){
		DESCRIPTOR_PIPE, status.stx_ino, own.st_mode & S_IRUSR, own.st_mode & S_IWUSR};
}

void pipe_table_refresh(struct pipe_table *table, pid_t pid, uint64_t now_ns)
{
	struct dirent *entry;
	int left = DESCRIPTORS_MAX;
	DIR *folder;

	if (table->read_ns && now_ns - table->read_ns < TABLE_AGE_NS)
		return;
	table->read_ns = now_ns;
	table->count = 0;
	folder = opendir(PROC_PATH("%d/fd", pid));
	while (folder && left-- > 0 && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			add_pipe(table, dirfd(folder), entry->d_name);
	if (folder)
		closedir(folder);
}

bool pipe_table_has(const struct pipe_table *table, uint64_t inode, bool writes)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->ends[i].inode == inode &&
		    (writes ? table->ends[i].can_write : table->ends[i].can_read))
			return true;
	return false;
}

void pipe_table_free(struct pipe_table *table)
{
	free(table->ends);
	*table = (struct pipe_table){0};
}
