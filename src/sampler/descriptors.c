/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/descriptors.h"

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
#include "sampler/thread_files.h"

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
