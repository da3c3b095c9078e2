/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One output: a file that appears under its name only when it is whole, or stdout.
 *
 * Text goes through a large buffer. The first error sticks: what follows is dropped, and
 * output_commit() returns it. Signals that end the program remove the unfinished files.
 */
#ifndef XT_MERGE_OUTPUT_H
#define XT_MERGE_OUTPUT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/new_file.h"

#define OUTPUT_BUFFER_BYTES (128u << 10) /* stays in a near cache until it is written */

struct output {
	const char *path;	 /* as the user gave it; "-" is stdout */
	struct xt_new_file file; /* what it is written to, unless that is stdout or memory */
	int fd;
	int error; /* -errno of the first failure, or 0 */
	char *buffer;
	size_t used;
	unsigned columns; /* of the terminal, 0 if it is none */
	bool has_colours;
	void *mapping; /* of what output_bytes() told of */
	size_t mapping_bytes;
};

struct output_bytes {
	const char *data; /* not terminated */
	size_t length;
};

#define OUTPUT_WANTS_FILE (-100002) /* for callers: it is a device or a pipe, and must not be */

#define OUTPUT_WANTS_FOLDER (-100003) /* for callers: it is something else */

#define OUTPUT_NAMED_TWICE (-100001) /* for callers with several outputs */

/*
 * path must outlive the output. Where it names something that is no regular file (a device, a
 * pipe), that is written in place. Returns as xt_new_file_open().
 */
int output_open(struct output *out, const char *path);

/* An output into memory, of which output_bytes() tells. 0 or -errno. */
int output_open_memory(struct output *out);

/* All that was written into memory so far, valid until the output is discarded. 0 or -errno. */
int output_bytes(struct output *out, struct output_bytes *bytes_out);

/* Writes what waits and closes the file, which has its name only after output_commit(). 0 or the first
 * -errno. */
int output_complete(struct output *out);

/* Writes what waits and gives the file its name. 0 or the first -errno: then there is no file.
 * In either case the output is closed. */
int output_commit(struct output *out);

/* Closes and removes the unfinished file. An output that is closed, or all zeros, is left. */
void output_discard(struct output *out);

/* What a signal that ends the program removes: a file, or a folder that is empty once all files are
 * gone. path must live until it is forgotten. For folders of outputs; main thread only. */
void output_remove_on_signal(const char *path);
void output_keep_on_signal(const char *path);

/* Makes the buffer empty. */
void output_flush(struct output *out);

/* Room for bytes (at most OUTPUT_BUFFER_BYTES) at the returned place; output_advance() to its
 * new end. */
static inline char *output_room(struct output *out, size_t bytes)
{
	if (OUTPUT_BUFFER_BYTES - out->used < bytes)
		output_flush(out);
	return out->buffer + out->used;
}

static inline void output_advance(struct output *out, const char *end)
{
	out->used = (size_t)(end - out->buffer);
}

/* Text of any length. */
void output_text(struct output *out, const char *text, size_t length);
void output_format(struct output *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
