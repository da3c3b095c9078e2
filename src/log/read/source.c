/* SPDX-License-Identifier: Apache-2.0 */
#include "log/read/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/base/regular_file.h"

/* Large enough that a system call is cheap compared with decoding what it read. */
#define BUFFER_BYTES_MIN (1u << 20)

/* Read after a gap. A reader that skips chunks needs only the header of the next one. */
#define AFTER_GAP_BYTES (16u << 10)

static int look_at_size(struct xt_source *source)
{
	struct stat status;
	int error = xt_regular_check(source->fd, &status);

	if (!error)
		source->total_bytes = (uint64_t)status.st_size;
	return error;
}

int xt_source_open_fd(struct xt_source *source, int fd)
{
	*source = (struct xt_source){.fd = fd};
	return look_at_size(source);
}

int xt_source_open(struct xt_source *source, const char *path)
{
	struct stat status;
	int fd = xt_regular_open(path, &status);

	*source = (struct xt_source){.fd = -1};
	if (fd < 0)
		return fd;
	*source = (struct xt_source){
		.fd = fd, .owns_fd = true, .total_bytes = (uint64_t)status.st_size};
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

void xt_source_open_memory(struct xt_source *source, const void *data, size_t data_bytes)
{
	*source = (struct xt_source){.fd = -1, .memory = data, .total_bytes = data_bytes};
}

void xt_source_close(struct xt_source *source)
{
	if (source->owns_fd)
		close(source->fd);
	free(source->buffer);
	*source = (struct xt_source){.fd = -1};
}

static bool reserve(struct xt_source *source, size_t want)
{
	size_t capacity = want > BUFFER_BYTES_MIN ? want : BUFFER_BYTES_MIN;
	uint8_t *grown;

	if (capacity <= source->buffer_capacity)
		return true;
	grown = realloc(source->buffer, capacity);
	if (!grown)
		return false;
	source->buffer = grown;
	source->buffer_capacity = capacity;
	return true;
}

/* Moves the buffer's window to `offset` and keeps the data it already has. */
static void slide(struct xt_source *source, uint64_t offset)
{
	uint64_t end = source->buffer_offset + source->buffer_bytes;
	size_t kept = 0;

	if (offset >= source->buffer_offset && offset < end) {
		kept = (size_t)(end - offset);
		memmove(source->buffer, source->buffer + (offset - source->buffer_offset), kept);
	}
	source->buffer_offset = offset;
	source->buffer_bytes = kept;
}

/* Reads on until the buffer has `want` bytes, and up to `most`. */
static void fill(struct xt_source *source, size_t want, size_t most)
{
	while (source->buffer_bytes < want) {
		ssize_t got = pread(source->fd, source->buffer + source->buffer_bytes,
				    most - source->buffer_bytes,
				    (off_t)(source->buffer_offset + source->buffer_bytes));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		source->buffer_bytes += (size_t)got;
	}
}

const uint8_t *xt_source_view(struct xt_source *source, uint64_t offset, size_t want,
			      size_t *have_out)
{
	uint64_t end = source->buffer_offset + source->buffer_bytes;
	size_t most;

	*have_out = 0;
	if (source->fd < 0) {
		if (offset >= source->total_bytes)
			return NULL;
		*have_out = (size_t)(source->total_bytes - offset);
		return source->memory + offset;
	}
	if (offset < source->buffer_offset || offset > end || end - offset < want) {
		if (offset > INT64_MAX - want || !reserve(source, want))
			return NULL;
		most = source->buffer_capacity;
		if (offset > end && want < AFTER_GAP_BYTES)
			most = AFTER_GAP_BYTES;
		slide(source, offset);
		fill(source, want, most);
	}
	*have_out = source->buffer_bytes - (size_t)(offset - source->buffer_offset);
	return source->buffer + (offset - source->buffer_offset);
}

void xt_source_forget(struct xt_source *source)
{
	source->buffer_bytes = 0;
}

uint64_t xt_source_total(struct xt_source *source)
{
	if (source->fd >= 0)
		look_at_size(source);
	return source->total_bytes;
}

bool xt_source_reaches(struct xt_source *source, uint64_t end_offset)
{
	return end_offset <= source->total_bytes || end_offset <= xt_source_total(source);
}
