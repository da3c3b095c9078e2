/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

size_t utf8_long_length(const uint8_t *p, size_t length)
{
	static const struct {
		uint8_t first_low, first_high; /* range of the first byte */
		uint8_t second_low,
			second_high; /* range of the second byte; later bytes are 80 to BF */
		uint8_t bytes;
	} forms[] = {
		{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		if (p[0] < forms[f].first_low || p[0] > forms[f].first_high)
			continue;
		if (forms[f].bytes > length)
			return 0;
		if (p[1] < forms[f].second_low || p[1] > forms[f].second_high)
			return 0;
		for (size_t i = 2; i < forms[f].bytes; i++)
			if ((p[i] & 0xc0) != 0x80)
				return 0;
		return forms[f].bytes;
	}
	return 0;
}

/* Matches all Unicode line separators and bidirectional controls. */
static bool is_layout(const uint8_t *p, size_t sequence_bytes)
{
	static const struct {
		uint8_t bytes;
		uint8_t first[3], last[3];
	} ranges[] = {
		{2, {0xd8, 0x9c}, {0xd8, 0x9c}},	     /* U+061C */
		{3, {0xe2, 0x80, 0x8e}, {0xe2, 0x80, 0x8f}}, /* U+200E, U+200F */
		{3, {0xe2, 0x80, 0xa8}, {0xe2, 0x80, 0xae}}, /* U+2028 to U+202E */
		{3, {0xe2, 0x81, 0xa6}, {0xe2, 0x81, 0xa9}}, /* U+2066 to U+2069 */
	};

	for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++)
		if (sequence_bytes == ranges[r].bytes &&
		    memcmp(p, ranges[r].first, sequence_bytes) >= 0 &&
		    memcmp(p, ranges[r].last, sequence_bytes) <= 0)
			return true;
	return false;
}

bool utf8_is_long_control(const uint8_t *p, size_t sequence_bytes)
{
	return (sequence_bytes == 2 && p[0] == 0xc2 && p[1] < 0xa0) || is_layout(p, sequence_bytes);
}

void utf8_make_plain(char *text, char replacement)
{
	size_t length = strlen(text);
	char *out = text;

	for (size_t i = 0; i < length;) {
		const uint8_t *p = (const uint8_t *)text + i;
		size_t n = utf8_length(p, length - i);

		if (!n || utf8_is_control(p, n)) {
			*out++ = replacement;
		} else {
			memmove(out, p, n);
			out += n;
		}
		i += n ? n : 1;
	}
	*out = '\0';
}
