/* SPDX-License-Identifier: Apache-2.0 */
#include "log/write/log_file.h"

#include <errno.h>
#include <sys/file.h>
#include <unistd.h>

int log_file_lock(int fd)
{
	int error;

	do
		error = flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
	while (error == EINTR);
	return error == EWOULDBLOCK ? -EBUSY : 0;
}

int log_file_write_all(int fd, const uint8_t *data, size_t data_bytes, uint64_t offset)
{
	while (data_bytes) {
		ssize_t written = pwrite(fd, data, data_bytes, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		data += written;
		data_bytes -= (size_t)written;
		offset += (uint64_t)written;
	}
	return 0;
}
