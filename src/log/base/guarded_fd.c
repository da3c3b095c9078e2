/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that are held with care. Any thread.
 */
#include "log/base/guarded_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int xt_own_file_take(struct xt_own_file *file, int fd)
{
	struct stat status;
	int error;

	*file = XT_OWN_FILE_NONE;
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

bool xt_own_file_is_ours(const struct xt_own_file *file)
{
	struct stat status;

	return file->fd >= 0 && !fstat(file->fd, &status) && status.st_dev == file->device &&
	       status.st_ino == file->inode;
}

int xt_own_file_reopen(const struct xt_own_file *file, const char *path, struct xt_own_file *again)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int error;

	if (fd < 0)
		return -errno;
	error = xt_own_file_take(again, fd);
	if (error)
		return error;
	if (again->device == file->device && again->inode == file->inode)
		return 0;
	xt_own_file_close(again);
	return -ESTALE;
}

void xt_own_file_close(struct xt_own_file *file)
{
	int saved_errno = errno;

	if (xt_own_file_is_ours(file))
		close(file->fd);
	*file = XT_OWN_FILE_NONE;
	errno = saved_errno;
}
