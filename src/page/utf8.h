/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign bytes that are to be shown: what of them is text, and what would do something to a terminal or to the text around it.
 */
#ifndef XT_PAGE_UTF8_H
#define XT_PAGE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of sequences of two bytes and more. */
size_t utf8_long_length(const uint8_t *p, size_t length);
bool utf8_is_long_control(const uint8_t *p, size_t sequence_bytes);

/* Bytes of the well-formed UTF-8 sequence at p (RFC 3629: no overlong forms, no surrogates), or 0 if
 * there is none. length: bytes that there are, 1 or more. */
static inline size_t utf8_length(const uint8_t *p, size_t length)
{
	return p[0] < 0x80 ? 1 : utf8_long_length(p, length);
}

/* Is that sequence a control character: C0, DEL, C1, or one that moves text about? */
static inline bool utf8_is_control(const uint8_t *p, size_t sequence_bytes)
{
	return sequence_bytes == 1 ? p[0] < 0x20 || p[0] == 0x7f
				   : utf8_is_long_control(p, sequence_bytes);
}

/* Puts the replacement in place of each control character and of each byte that is no UTF-8. */
void utf8_make_plain(char *text, char replacement);

#endif
