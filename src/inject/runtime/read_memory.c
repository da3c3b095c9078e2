/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/runtime/read_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE_BYTES 4096

bool read_memory(void *to, uintptr_t from, size_t bytes)
{
	struct iovec local = {.iov_base = to, .iov_len = bytes};
	struct iovec remote = {.iov_base = (void *)from, .iov_len = bytes};
	int saved_errno = errno;
	ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	errno = saved_errno;
	return copied == (ssize_t)bytes;
}

bool read_memory_words(uint64_t *to, const uintptr_t *from, size_t count)
{
	struct iovec local = {.iov_base = to, .iov_len = count * sizeof(*to)};
	struct iovec remote[READ_WORDS_MAX];
	int saved_errno = errno;
	ssize_t copied;

	for (size_t i = 0; i < count; i++)
		remote[i] = (struct iovec){.iov_base = (void *)from[i], .iov_len = sizeof(*to)};
	copied = process_vm_readv(getpid(), &local, 1, remote, count, 0);
	errno = saved_errno;
	return copied == (ssize_t)local.iov_len;
}

size_t read_memory_text(char *out, size_t out_bytes, uintptr_t from)
{
	size_t used = 0;

	/* The page behind the text may be unmapped. */
	while (used + 1 < out_bytes) {
		size_t part = PAGE_BYTES - (from + used) % PAGE_BYTES;

		if (part > out_bytes - 1 - used)
			part = out_bytes - 1 - used;
		if (!read_memory(out + used, from + used, part))
			return 0;
		if (memchr(out + used, '\0', part))
			return strlen(out);
		used += part;
	}
	out[used] = '\0';
	return used;
}
