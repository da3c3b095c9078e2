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
#include "xtrace/log_format.h"

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
	char path[64], text[EPOLL_TEXT_BYTES];
	const char *line = text;
	uint32_t count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	if (proc_file_read(path, text, sizeof(text)) < 0)
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
	    grow(&table->ends, &table->capacity, table->count + 1, sizeof(*table->ends)))
		return;
	table->ends[table->count++] =
		(struct pipe_end){status.stx_ino, own.st_mode & S_IRUSR, own.st_mode & S_IWUSR};
}

void pipe_table_refresh(struct pipe_table *table, pid_t pid, uint64_t now_ns)
{
	char path[64];
	struct dirent *entry;
	int left = DESCRIPTORS_MAX;
	DIR *folder;

	if (table->read_ns && now_ns - table->read_ns < TABLE_AGE_NS)
		return;
	table->read_ns = now_ns;
	table->count = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
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
