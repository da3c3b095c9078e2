/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes untrusted bytes safe to print, and converts numbers to digits fast. Allocates nothing: the
 * *_bound() functions state how much room the caller must provide. Only copies are allocated.
 */
#ifndef XT_BASE_TEXT_H
#define XT_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

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
