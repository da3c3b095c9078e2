/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that qemu-user 7.2 lacks, for tests under emulation. tools/arm64-emulate.sh has
 * every emulated program preload it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* A position in an array of ranges. */
struct place {
	const struct iovec *range;
	unsigned long count;
	size_t done_bytes; /* of the range */
};

static size_t part_bytes(struct place *place)
{
	while (place->count && place->done_bytes == place->range->iov_len) {
		place->range++;
		place->count--;
		place->done_bytes = 0;
	}
	return place->count ? place->range->iov_len - place->done_bytes : 0;
}

static uint8_t *address_of(const struct place *place)
{
	return (uint8_t *)place->range->iov_base + place->done_bytes;
}

/* qemu maps a program's memory at the program's own addresses. */
EXPORT ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
				const struct iovec *remote, unsigned long remote_count,
				unsigned long flags)
{
	struct place to = {local, local_count, 0}, from = {remote, remote_count, 0};
	char path[40];
	ssize_t sum = 0;
	int fd;

	if (flags) {
		errno = EINVAL;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		errno = errno == ENOENT ? ESRCH : EPERM;
		return -1;
	}
	for (size_t room; (room = part_bytes(&to)) != 0;) {
		size_t part = part_bytes(&from);
		ssize_t got;

		if (!part)
			break;
		part = part < room ? part : room;
		got = pread(fd, address_of(&to), part, (off_t)address_of(&from));
		if (got <= 0) {
			if (!sum) {
				errno = EFAULT;
				sum = -1;
			}
			break;
		}
		to.done_bytes += (size_t)got;
		from.done_bytes += (size_t)got;
		sum += got;
	}
	close(fd);
	return sum;
}
