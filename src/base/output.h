/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One output: a file or stdout. A file gets its name only when it is complete. Text is written to a
 * large buffer first. The first error is kept: later text is dropped, and output_commit() returns
 * the error. If the process ends early, base/unfinished.h removes the file.
 */
#ifndef XT_BASE_OUTPUT_H
#define XT_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "log/base/new_file.h"

#define OUTPUT_BUFFER_BYTES (128u << 10) /* fits the L2 cache */

struct output {
	const char *path;	 /* as the user gave it; "-" is stdout */
	struct xt_new_file file; /* the file, unless it is stdout or memory */
	int fd;
	int error; /* first -errno, or 0 */
	char *buffer;
	size_t used;
	unsigned columns; /* of the terminal; 0: not a terminal */
	bool has_colours;
	bool is_memory; /* then: all text but that of the buffer */
	char *memory;
	size_t memory_used, memory_capacity;
};

struct output_bytes {
	const char *data; /* not terminated */
	size_t length;
};

#define OUTPUT_WANTS_FILE (-100002) /* set by callers: the output cannot be a device or a pipe */

#define OUTPUT_WANTS_FOLDER (-100003) /* set by callers: the path is not a folder */

#define OUTPUT_NAMED_TWICE (-100001) /* set by callers: another output has the same path */

/*
 * path must outlive the output. Devices and pipes are written in place. Returns 0 or an error of
 * xt_new_file_open().
 */
int output_open(struct output *out, const char *path);

/* The same, but "-" is a file. */
int output_open_file(struct output *out, const char *path);

/*
 * Writes to a terminal as to a file. For launchers that give programs a terminal, but write to a
 * file or a pipe themselves. Call it before output_open().
 */
void output_ignore_terminal(void);

/* The width that the user set for text that goes to no terminal; 0: none. */
unsigned output_columns_wanted(void);

/* Opens an output in memory, for output_bytes(). */
void output_open_memory(struct output *out);

/* All bytes written to memory so far, valid until more is written or the output is discarded. */
struct output_bytes output_bytes(struct output *out);

/*
 * Writes the buffer and closes the file. output_commit() then gives it its name. Returns 0 or the
 * first -errno.
 */
int output_complete(struct output *out);

/*
 * Writes the buffer, gives the file its name and closes the output. Returns 0 or the first -errno;
 * on errors there is no file.
 */
int output_commit(struct output *out);

/*
 * Closes the output and removes the unfinished file. Does nothing if the output is closed or all
 * zeros.
 */
void output_discard(struct output *out);

/* Writes the buffer. */
void output_flush(struct output *out);

/*
 * Returns a place for up to `bytes` bytes (at most OUTPUT_BUFFER_BYTES). Pass the end of the text
 * written there to output_advance().
 */
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

/* Writes text of any length. */
void output_text(struct output *out, const char *text, size_t length);
void output_format(struct output *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline void output_string(struct output *out, const char *text)
{
	output_text(out, text, strlen(text));
}

static inline void output_char(struct output *out, char character)
{
	*output_room(out, 1) = character;
	out->used++;
}

#endif
