/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts texts at UTF-8 character boundaries, and keeps lists of lines.
 */
#include "diff/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/message.h"

#define MARK_BYTES 64

uint64_t hash_text(const char *text, size_t length)
{
	uint64_t value = 0xcbf29ce484222325;

	for (size_t i = 0; i < length; i++)
		value = (value ^ (uint8_t)text[i]) * 0x100000001b3;
	return value;
}

const char *text_keep(char *text)
{
	static char *texts[32];
	static unsigned next;
	char **place = &texts[next++ % 32];

	free(*place);
	*place = text;
	return text;
}

const char *text_print(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = xt_vasprintf(format, arguments);
	va_end(arguments);
	return text_keep(text);
}

const char *text_escaped(const char *text, const char *const escapes[128])
{
	size_t bytes;
	char *escaped;
	FILE *stream = xt_open_memstream(&escaped, &bytes);

	for (; *text; text++) {
		unsigned char character = (unsigned char)*text;
		const char *escape = character < 128 ? escapes[character] : NULL;

		if (escape)
			fputs(escape, stream);
		else
			putc(*text, stream);
	}
	xt_close_memstream(stream);
	return text_keep(escaped);
}

char *file_read(int file, size_t *bytes_out)
{
	size_t bytes = 0, room = 1u << 16;
	char *text = xt_malloc(room);
	ssize_t got = 1;

	while (got > 0) {
		if (bytes + 1 == room)
			text = xt_reallocarray(text, room *= 2, 1);
		got = pread(file, text + bytes, room - bytes - 1, (off_t)bytes);
		bytes += got > 0 ? (size_t)got : 0;
	}
	text[bytes] = '\0';
	*bytes_out = bytes;
	if (!got)
		return text;
	free(text);
	return NULL;
}

char *file_read_path(const char *path, size_t *bytes_out)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	char *text = file < 0 ? NULL : file_read(file, bytes_out);
	int error = errno;

	if (file >= 0)
		close(file);
	errno = error;
	return text;
}

size_t file_start(const char *path, int flags, char *out, size_t out_bytes)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | flags);
	ssize_t got = file < 0 ? 0 : read(file, out, out_bytes - 1);

	if (file >= 0)
		close(file);
	got = got > 0 ? got : 0;
	out[got] = '\0';
	return (size_t)got;
}

const char *text_time(uint64_t time_ns, const char *format)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm parts;
	char text[64];

	gmtime_r(&seconds, &parts);
	strftime(text, sizeof(text), format, &parts);
	return text_print("%s", text);
}

/* Is this a continuation byte? */
static bool is_inside_character(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t utf8_prefix(const char *text, size_t bytes_max)
{
	size_t length = strnlen(text, bytes_max);

	while (length && text[length] && is_inside_character(text[length]))
		length--;
	return length;
}

const char *utf8_suffix(const char *text, size_t bytes_max)
{
	size_t length = strlen(text);

	if (length > bytes_max)
		text += length - bytes_max;
	while (is_inside_character(*text))
		text++;
	return text;
}

const char *text_without_middle(const char *text, size_t bytes_max)
{
	size_t head = (bytes_max - 3) * 2 / 3;

	if (strlen(text) <= bytes_max || bytes_max < 8)
		return text;
	return text_print("%.*s...%s", (int)utf8_prefix(text, head), text,
			  utf8_suffix(text, bytes_max - 3 - head));
}

void shorten_text(char *text, size_t limit_bytes)
{
	size_t length = strlen(text), head, mark_bytes;
	char mark[MARK_BYTES];
	const char *tail;

	if (length <= limit_bytes)
		return;
	mark_bytes = (size_t)snprintf(mark, sizeof(mark),
				      "\xe2\x80\xa6[%zu bytes, %016" PRIx64 "]\xe2\x80\xa6", length,
				      hash_text(text, length));
	head = (limit_bytes - mark_bytes) * 2 / 3;
	tail = utf8_suffix(text, limit_bytes - mark_bytes - head);
	head = utf8_prefix(text, head);
	memmove(text + head + mark_bytes, tail, strlen(tail) + 1);
	memcpy(text + head, mark, mark_bytes);
}

void problems_add(struct problems *p, const char *format, ...)
{
	va_list arguments;
	char *line;

	va_start(arguments, format);
	line = xt_vasprintf(format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < p->count; i++) {
		if (strcmp(p->lines[i], line) != 0)
			continue;
		free(line);
		return;
	}
	xt_append(p->lines, p->count, p->capacity, line);
}

void problems_free(struct problems *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->lines[i]);
	free(p->lines);
	*p = (struct problems){0};
}

void problems_print(const struct problems *p)
{
	for (size_t i = 0; i < p->count; i++)
		print_error("%s", p->lines[i]);
}
