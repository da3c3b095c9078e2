/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks untrusted bytes and makes them safe to print: what is valid UTF-8, and what could control
 * a terminal or reorder text. Converts numbers to digits fast. Allocates nothing: the *_bound()
 * functions state how much room the caller must provide. Only copies are allocated.
 */
#ifndef XT_BASE_TEXT_H
#define XT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

/* For sequences of two or more bytes; used by utf8_length(). */
size_t utf8_long_length(const uint8_t *p, size_t length);
bool utf8_is_long_control(const uint8_t *p, size_t sequence_bytes);

/*
 * Returns the length of the UTF-8 sequence at p, or 0 if it is not well formed. Overlong forms and
 * surrogates are not (RFC 3629). length is the number of available bytes, at least 1.
 */
static inline size_t utf8_length(const uint8_t *p, size_t length)
{
	return p[0] < 0x80 ? 1 : utf8_long_length(p, length);
}

/* True for control characters: C0, DEL, C1, and bidirectional or line controls. */
static inline bool utf8_is_control(const uint8_t *p, size_t sequence_bytes)
{
	return sequence_bytes == 1 ? p[0] < 0x20 || p[0] == 0x7f
				   : utf8_is_long_control(p, sequence_bytes);
}

/* Replaces each control character and each byte that is not valid UTF-8. */
void utf8_make_plain(char *text, char replacement);

/*
 * Writes text as valid UTF-8. Control characters become '_' or U+FFFD. The byte forbidden, if not
 * 0, becomes ':'. Returns the length. Does not terminate the text.
 */
size_t text_clean(char *out, const char *text, size_t length, char forbidden);
static inline size_t text_clean_bound(size_t length)
{
	return length * 3;
}

/* Returns a cleaned copy. Free it with free(). */
static inline char *text_clean_copy(const char *text)
{
	size_t length = strlen(text);
	char *clean = xt_malloc(text_clean_bound(length) + 1);

	clean[text_clean(clean, text, length, '\0')] = '\0';
	return clean;
}

/* Writes text as the inside of a JSON string. Returns the length. */
size_t text_json(char *out, const char *text, size_t length);
static inline size_t text_json_bound(size_t length)
{
	return length * 6;
}

/* Returns the number of characters in valid UTF-8. */
size_t text_columns(const char *text, size_t length);

#define TEXT_U64_BYTES_MAX 20

/* Writes value in decimal; returns the end. */
char *text_u64(char *out, uint64_t value);

#define TEXT_US_BYTES_MAX 25

/* Writes nanoseconds as microseconds with three decimals, "-0.001"; returns the end. */
char *text_us(char *out, int64_t ns);

/* Copies a literal or other text of known length; returns the end. */
static inline char *text_copy(char *out, const char *text, size_t length)
{
	memcpy(out, text, length);
	return out + length;
}
#define TEXT_LITERAL(out, literal) text_copy((out), (literal), sizeof(literal) - 1)

/* Shortens each path in a line to its file name, in place. */
void text_hide_folders(char *line);

#endif
