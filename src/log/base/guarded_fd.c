/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/guarded_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int xt_guarded_fd_take(struct xt_guarded_fd *file, int fd)
{
	struct stat status;
	int error;

	*file = XT_GUARDED_FD_NONE;
	if (fd <= STDERR_FILENO) {
		int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

		error = errno;
		close(fd);
		if (moved < 0)
			return -error;
		fd = moved;
	}
	if (fstat(fd, &status)) {
		error = errno;
		close(fd);
		return -error;
	}
	file->fd = fd;
	file->device = status.st_dev;
	file->inode = status.st_ino;
	return 0;
}

bool xt_guarded_fd_is_ours(const struct xt_guarded_fd *file)
{
	struct stat status;

	return file->fd >= 0 && !fstat(file->fd, &status) && status.st_dev == file->device &&
	       status.st_ino == file->inode;
}

int xt_guarded_fd_reopen(const struct xt_guarded_fd *file, const char *path,
			 struct xt_guarded_fd *again)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int error;

	if (fd < 0)
		return -errno;
	error = xt_guarded_fd_take(again, fd);
	if (error)
		return error;
	if (again->device == file->device && again->inode == file->inode)
		return 0;
	xt_guarded_fd_close(again);
	return -ESTALE;
}

void xt_guarded_fd_close(struct xt_guarded_fd *file)
{
	int saved_errno = errno;

	if (xt_guarded_fd_is_ours(file))
		close(file->fd);
	*file = XT_GUARDED_FD_NONE;
	errno = saved_errno;
}
