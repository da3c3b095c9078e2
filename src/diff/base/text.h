/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts: limits of their length, and lists of lines for people. Names in a log can have any
 * length; docs/DIFF.md lists the limits.
 */
#ifndef XT_DIFF_TEXT_H
#define XT_DIFF_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define FIELD_BYTES_MAX 256  /* programs, hosts, devices, versions, ranges, labels */
#define LINE_BYTES_MAX	1024 /* command lines, warnings */
#define NAME_BYTES_MAX	4096 /* frames, kernels and other names of rows */

/*
 * Shortens the text in place to at most limit_bytes, which is 128 or more. Keeps the beginning and
 * the end. The length and a hash of the whole text go between them, so different texts stay
 * different. Keeps UTF-8 characters whole.
 */
void shorten_text(char *text, size_t limit_bytes);

/*
 * The length of the longest prefix of at most bytes_max bytes that does not split a UTF-8
 * character.
 */
size_t utf8_prefix(const char *text, size_t bytes_max);

/* The longest suffix of at most bytes_max bytes that does not split a UTF-8 character. */
const char *utf8_suffix(const char *text, size_t bytes_max);

/*
 * Reads a file from its beginning. The caller frees the text, which is terminated. NULL and errno
 * on failure.
 */
char *file_read(int file, size_t *bytes_out);

/* The same by name. */
char *file_read_path(const char *path, size_t *bytes_out);

/* Reads the first bytes of a file, and terminates them. flags are of open(). Returns the number. */
size_t file_start(const char *path, int flags, char *out, size_t out_bytes);

/* A time since 1970, in UTC, as strftime() and text_print() make it. */
const char *text_time(uint64_t time_ns, const char *format);

/*
 * Texts that are valid until 31 more are made, for the main thread only: an allocated one, a
 * formatted one, and a copy with escapes for some characters.
 */
const char *text_keep(char *text);
const char *text_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *text_escaped(const char *text, const char *const escapes[128]);

/* A text in at most bytes_max bytes. Names often differ only at the end, so the middle goes. */
const char *text_without_middle(const char *text, size_t bytes_max);

/* FNV-1a, 64 bits. */
uint64_t hash_text(const char *text, size_t length);

struct problems {
	char **lines;
	size_t count, capacity;
};

/* Appends a line unless the list contains it. */
void problems_add(struct problems *problems, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void problems_free(struct problems *problems);

/* As errors, to stderr. */
void problems_print(const struct problems *problems);

#endif
