/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/sampler_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANCESTORS_MAX 64
#define BACKLOG	      64

struct sampler_address {
	struct sockaddr_un name;
	socklen_t bytes;
};

struct process_origin {
	pid_t parent;
	uint64_t start_ticks; /* since boot, in units of sysconf(_SC_CLK_TCK) */
};

/* Reads /proc/PID/stat. False if there is no such process. */
static bool process_origin_read(pid_t pid, struct process_origin *origin)
{
	char path[64], text[1024];
	const char *end;
	ssize_t length;
	int fd, parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	/* The name before it may contain anything, even a ')'. See proc(5) for the fields. */
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1,
			   " %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
			   " %*s %*s %" SCNu64,
			   &parent, &origin->start_ticks) != 2)
		return false;
	origin->parent = parent;
	return true;
}

static void make_address(struct sampler_address *out, pid_t pid, uint64_t start_ticks,
			 const struct stat *folder)
{
	int length;

	out->name = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(out->name.sun_path + 1, sizeof(out->name.sun_path) - 1,
			  "xtrace-sampler.%d.%" PRIu64 ".%jx.%jx", pid, start_ticks,
			  (uintmax_t)folder->st_dev, (uintmax_t)folder->st_ino);
	out->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int find_address(pid_t pid, const char *data_dir, struct sampler_address *out)
{
	struct process_origin origin;
	struct stat folder;

	if (stat(data_dir, &folder))
		return -errno;
	if (!process_origin_read(pid, &origin))
		return -ESRCH;
	make_address(out, pid, origin.start_ticks, &folder);
	return 0;
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int sampler_socket_claim(pid_t pid, const char *data_dir)
{
	struct sampler_address address;
	int fd, error = find_address(pid, data_dir, &address);

	if (error)
		return error;
	fd = open_socket();
	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&address.name, address.bytes) && !listen(fd, BACKLOG))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* The kernel notes who listens. Another user may have taken the name. */
static pid_t listener(const struct sampler_address *address)
{
	struct ucred peer;
	socklen_t peer_bytes = sizeof(peer);
	int fd = open_socket();
	pid_t found = 0;

	if (fd < 0)
		return 0;
	if (!connect(fd, (const struct sockaddr *)&address->name, address->bytes) &&
	    !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) && peer.uid == geteuid())
		found = peer.pid;
	close(fd);
	return found;
}

pid_t sampler_socket_find(pid_t pid, const char *data_dir)
{
	struct sampler_address address;
	struct process_origin origin;
	struct stat folder;
	pid_t found = 0;

	if (stat(data_dir, &folder))
		return 0;
	for (int i = 0; i < ANCESTORS_MAX && pid > 0 && !found; i++) {
		if (!process_origin_read(pid, &origin))
			break;
		make_address(&address, pid, origin.start_ticks, &folder);
		found = listener(&address);
		pid = origin.parent;
	}
	return found;
}

bool sampler_socket_needs_permit(void)
{
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';
	bool is_read = fd >= 0 && read(fd, &scope, 1) == 1;

	if (fd >= 0)
		close(fd);
	return is_read && scope == '1';
}

int sampler_socket_connect(pid_t pid, const char *data_dir, int timeout_ms)
{
	const struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	struct sampler_address address;
	int fd, error = find_address(pid, data_dir, &address);

	if (error)
		return error;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) &&
	    !connect(fd, (const struct sockaddr *)&address.name, address.bytes))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

void sampler_socket_end(int fd)
{
	char byte = SAMPLER_SOCKET_END;

	if (write(fd, &byte, 1) == 1 && read(fd, &byte, 1) < 0)
		return;
}
