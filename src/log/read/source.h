/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of a reader: a file read with pread() through a buffer, or memory.
 *
 * It never maps the file: a mapped log that is truncated while it is read kills the reader with
 * SIGBUS. Belongs to one thread.
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
	uint64_t total_bytes; /* at the last check: the file may grow or shrink */
	uint8_t *buffer;
	size_t buffer_capacity;
	uint64_t buffer_offset; /* file offset of buffer[0] */
	size_t buffer_bytes;
};

/* 0 or -errno. Accepts regular files only (-EISDIR, -ESPIPE). Never blocks. */
int xt_source_open(struct xt_source *source, const char *path);

/* Reads from fd, which the caller still owns. 0 or -errno. */
int xt_source_open_fd(struct xt_source *source, int fd);

void xt_source_open_memory(struct xt_source *source, const void *data, size_t data_bytes);

/* Accepts zeros. */
void xt_source_close(struct xt_source *source);

/*
 * Returns the bytes from `offset` on: at least `want` bytes, unless the file ends, memory is short
 * or a read fails. *have_out is their number. Valid until the next call.
 */
const uint8_t *xt_source_view(struct xt_source *source, uint64_t offset, size_t want,
			      size_t *have_out);

/* Reads from the file again: a writer may have replaced bytes at its end. */
void xt_source_forget(struct xt_source *source);

/* The current size of the file. */
uint64_t xt_source_total(struct xt_source *source);

/* Whether the file reaches end_offset. Checks the file's size again before it returns false. */
bool xt_source_reaches(struct xt_source *source, uint64_t end_offset);

#endif
