/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks untrusted bytes before they are displayed: what is valid UTF-8, and what could control a
 * terminal or reorder text.
 */
#ifndef XT_BASE_UTF8_H
#define XT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
