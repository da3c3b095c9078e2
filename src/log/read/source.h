/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a reader's bytes come from: a file, seen through a buffer that pread fills, or memory.
 *
 * A mapping would be shorter, but a mapped log that is cut short while it is read kills the
 * reader with SIGBUS. Belongs to one thread.
 */
#ifndef XT_LOG_SOURCE_H
#define XT_LOG_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xt_source {
	int fd; /* -1: memory */
	bool owns_fd;
	const uint8_t *memory;
	uint64_t total_bytes; /* as last seen: the file may grow or shrink */
	uint8_t *buffer;
	size_t buffer_capacity;
	uint64_t buffer_offset; /* of buffer[0] in the file */
	size_t buffer_bytes;
};

/* 0 or -errno. Only regular files are taken (-EISDIR, -ESPIPE); opening never blocks. */
int xt_source_open(struct xt_source *source, const char *path);

/* Reads from fd, which stays the caller's. 0 or -errno. */
int xt_source_open_fd(struct xt_source *source, int fd);

void xt_source_open_memory(struct xt_source *source, const void *data, size_t data_bytes);

/* Accepts a source that was not opened, if it is all zeros. */
void xt_source_close(struct xt_source *source);

/*
 * The bytes from offset on, at least want of them unless the file ends before (or memory is
 * short, or the file cannot be read there): *have_out says how many. Valid until the next call.
 */
const uint8_t *xt_source_view(struct xt_source *source, uint64_t offset, size_t want,
			      size_t *have_out);

/* How long the file is now. */
uint64_t xt_source_total(struct xt_source *source);

/* Does the file reach up to end_offset? Looks again before it says no. */
bool xt_source_reaches(struct xt_source *source, uint64_t end_offset);

#endif
