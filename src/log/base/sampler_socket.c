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
#include <sys/un.h>
#include <unistd.h>

#define ANCESTORS_MAX 64
#define BACKLOG	      64

bool process_origin_read(pid_t pid, struct process_origin *origin)
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

static socklen_t make_address(struct sockaddr_un *address, pid_t pid, uint64_t start_ticks,
			      const struct stat *folder)
{
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
			  "xtrace-sampler.%d.%" PRIu64 ".%jx.%jx", pid, start_ticks,
			  (uintmax_t)folder->st_dev, (uintmax_t)folder->st_ino);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

int sampler_socket_claim(pid_t pid, const char *data_dir)
{
	struct process_origin origin;
	struct sockaddr_un address;
	socklen_t address_bytes;
	struct stat folder;
	int fd, error;

	if (stat(data_dir, &folder))
		return -errno;
	if (!process_origin_read(pid, &origin))
		return -ESRCH;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	address_bytes = make_address(&address, pid, origin.start_ticks, &folder);
	if (!bind(fd, (struct sockaddr *)&address, address_bytes) && !listen(fd, BACKLOG))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

void sampler_socket_drain(int fd)
{
	int peer;

	while ((peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		close(peer);
}

/* The kernel notes who listens. Another user may have taken the name. */
static pid_t listener(pid_t pid, uint64_t start_ticks, const struct stat *folder)
{
	struct sockaddr_un address;
	socklen_t address_bytes = make_address(&address, pid, start_ticks, folder);
	struct ucred peer;
	socklen_t peer_bytes = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	pid_t found = 0;

	if (fd < 0)
		return 0;
	if (!connect(fd, (struct sockaddr *)&address, address_bytes) &&
	    !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) && peer.uid == geteuid())
		found = peer.pid;
	close(fd);
	return found;
}

pid_t sampler_socket_find(pid_t pid, const char *data_dir)
{
	struct process_origin origin;
	struct stat folder;
	pid_t found = 0;

	if (stat(data_dir, &folder))
		return 0;
	for (int i = 0; i < ANCESTORS_MAX && pid > 0 && !found; i++) {
		if (!process_origin_read(pid, &origin))
			break;
		found = listener(pid, origin.start_ticks, &folder);
		pid = origin.parent;
	}
	return found;
}
