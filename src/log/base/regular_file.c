/* SPDX-License-Identifier: Apache-2.0 */
#include "log/base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int check_mode(mode_t mode)
{
	return S_ISREG(mode) ? 0 : S_ISDIR(mode) ? -EISDIR : -ESPIPE;
}

int xt_regular_check(int fd, struct stat *status)
{
	return fstat(fd, status) ? -errno : check_mode(status->st_mode);
}

int xt_regular_open_at(int folder, const char *path, int flags, struct stat *status)
{
	int fd, error;

	/* Opening a device can have an effect, so look before. */
	if (fstatat(folder, path, status, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0))
		return -errno;
	error = check_mode(status->st_mode);
	if (error)
		return error;
	fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
	if (fd < 0)
		return -errno;
	error = xt_regular_check(fd, status);
	if (!error)
		return fd;
	close(fd);
	return error;
}

int xt_regular_open(const char *path, struct stat *status)
{
	return xt_regular_open_at(AT_FDCWD, path, 0, status);
}

int xt_read_at(int fd, void *out, size_t bytes, uint64_t offset)
{
	uint8_t *p = out;

	while (bytes) {
		ssize_t got = pread(fd, p, bytes, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		p += got;
		bytes -= (size_t)got;
		offset += (uint64_t)got;
	}
	return 0;
}

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
