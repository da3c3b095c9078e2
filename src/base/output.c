/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffered output to a file that is renamed when it is complete.
 */
#include "base/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/unfinished.h"

#define TERMINAL_COLUMNS_MIN 40 /* narrower tables are unreadable */
#define COLUMNS_MAX	     10000
#define LINE_BYTES	     1024 /* text that is formatted in place */

static int open_path(struct output *out)
{
	struct stat now;
	bool makes_file;
	int error;

	if (!strcmp(out->path, "-")) {
		out->fd = STDOUT_FILENO;
		return 0;
	}
	/* Opening a pipe makes no file, and waits for its reader: signals must end that. */
	makes_file = stat(out->path, &now) || S_ISREG(now.st_mode);
	if (makes_file)
		unfinished_hold();
	error = xt_new_file_open(&out->file, out->path);
	if (!error) {
		out->fd = out->file.fd;
		unfinished_add(out->file.unfinished);
	}
	if (makes_file)
		unfinished_release();
	return error;
}

static void release(struct output *out)
{
	unfinished_hold();
	unfinished_remove(out->file.unfinished);
	xt_new_file_close(&out->file);
	unfinished_release();
	free_all(out->buffer, out->memory);
	*out = (struct output){.path = out->path, .fd = -1, .file = XT_NEW_FILE_NONE};
}

unsigned output_columns_wanted(void)
{
	const char *text = getenv("COLUMNS");
	long columns = text ? strtol(text, NULL, 10) : 0;

	if (columns <= 0 || columns > COLUMNS_MAX)
		return 0;
	return columns < TERMINAL_COLUMNS_MIN ? TERMINAL_COLUMNS_MIN : (unsigned)columns;
}

static bool ignores_terminal;

void output_ignore_terminal(void)
{
	ignores_terminal = true;
}

/* NO_COLOR: see no-color.org. */
static void detect_terminal(struct output *out)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize size;

	if (ignores_terminal || !isatty(out->fd)) {
		out->columns = out->fd == STDOUT_FILENO ? output_columns_wanted() : 0;
		return;
	}
	if (!ioctl(out->fd, TIOCGWINSZ, &size) && size.ws_col)
		out->columns =
			size.ws_col < TERMINAL_COLUMNS_MIN ? TERMINAL_COLUMNS_MIN : size.ws_col;
	out->has_colours = (!no_colour || !no_colour[0]) && term && strcmp(term, "dumb");
}

int output_open(struct output *out, const char *path)
{
	int error;

	*out = (struct output){.path = path, .fd = -1, .file = XT_NEW_FILE_NONE};
	out->buffer = xt_malloc(OUTPUT_BUFFER_BYTES);
	error = open_path(out);
	if (!error)
		detect_terminal(out);
	if (error)
		release(out);
	return error;
}

int output_open_file(struct output *out, const char *path)
{
	return output_open(out, strcmp(path, "-") ? path : "./-");
}

void output_open_memory(struct output *out)
{
	*out = (struct output){
		.path = "memory", .fd = -1, .file = XT_NEW_FILE_NONE, .is_memory = true};
	out->buffer = xt_malloc(OUTPUT_BUFFER_BYTES);
}

struct output_bytes output_bytes(struct output *out)
{
	output_flush(out);
	return (struct output_bytes){out->memory_used ? out->memory : "", out->memory_used};
}

static void keep(struct output *out, const char *text, size_t length)
{
	xt_grow(out->memory, out->memory_capacity, out->memory_used + length);
	if (length) /* the memory may not exist yet */
		memcpy(out->memory + out->memory_used, text, length);
	out->memory_used += length;
}

static void write_all(struct output *out, const char *text, size_t length)
{
	if (out->is_memory) {
		keep(out, text, length);
		return;
	}
	while (length && !out->error) {
		ssize_t written = write(out->fd, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			out->error = -errno;
			return;
		}
		text += written;
		length -= (size_t)written;
	}
}

void output_flush(struct output *out)
{
	write_all(out, out->buffer, out->used);
	out->used = 0;
}

void output_text(struct output *out, const char *text, size_t length)
{
	if (length > OUTPUT_BUFFER_BYTES - out->used) {
		output_flush(out);
		if (length > OUTPUT_BUFFER_BYTES) {
			write_all(out, text, length);
			return;
		}
	}
	if (length)
		memcpy(out->buffer + out->used, text, length);
	out->used += length;
}

void output_format(struct output *out, const char *format, ...)
{
	char *place = output_room(out, LINE_BYTES), *text;
	va_list arguments, again;
	int length;

	va_start(arguments, format);
	va_copy(again, arguments);
	length = vsnprintf(place, LINE_BYTES, format, arguments);
	if (length >= 0 && length < LINE_BYTES) {
		out->used += (size_t)length;
	} else {
		text = xt_vasprintf(format, again);
		output_string(out, text);
		free(text);
	}
	va_end(again);
	va_end(arguments);
}

int output_complete(struct output *out)
{
	output_flush(out);
	if (out->fd >= 0 && out->fd != STDOUT_FILENO && close(out->fd) < 0 && !out->error)
		out->error = -errno;
	out->fd = -1;
	return out->error;
}

int output_commit(struct output *out)
{
	int error;

	error = output_complete(out);
	if (!error)
		error = xt_new_file_commit(&out->file);
	release(out);
	return error;
}

void output_discard(struct output *out)
{
	if (!out->buffer)
		return;
	if (out->fd >= 0 && out->fd != STDOUT_FILENO)
		close(out->fd);
	release(out);
}
