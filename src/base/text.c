/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks and cleans text, and formats digits.
 */
#include "base/text.h"

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

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

size_t text_clean(char *out, const char *text, size_t length, char forbidden)
{
	const uint8_t *p = (const uint8_t *)text;
	char *o = out;

	for (size_t i = 0; i < length;) {
		size_t n = utf8_length(p + i, length - i);

		if (!n)
			o = TEXT_LITERAL(o, REPLACEMENT);
		else if (utf8_is_control(p + i, n))
			*o++ = '_';
		else if (forbidden && text[i] == forbidden)
			*o++ = ':';
		else
			o = text_copy(o, text + i, n);
		i += n ? n : 1;
	}
	return (size_t)(o - out);
}

size_t text_json(char *out, const char *text, size_t length)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *p = (const uint8_t *)text;
	char *o = out;

	for (size_t i = 0; i < length;) {
		size_t n = utf8_length(p + i, length - i);

		if (!n) {
			o = TEXT_LITERAL(o, REPLACEMENT);
		} else if (p[i] == '"' || p[i] == '\\') {
			*o++ = '\\';
			*o++ = text[i];
		} else if (p[i] < 0x20 || p[i] == 0x7f) {
			o = TEXT_LITERAL(o, "\\u00");
			*o++ = hex[p[i] >> 4];
			*o++ = hex[p[i] & 15];
		} else if (n == 2 && utf8_is_control(p + i, n)) { /* C1: U+0080 to U+009F */
			o = TEXT_LITERAL(o, "\\u00");
			*o++ = hex[p[i + 1] >> 4];
			*o++ = hex[p[i + 1] & 15];
		} else {
			o = text_copy(o, text + i, n);
		}
		i += n ? n : 1;
	}
	return (size_t)(o - out);
}

size_t text_columns(const char *text, size_t length)
{
	size_t columns = 0;

	for (size_t i = 0; i < length; i++)
		columns += ((uint8_t)text[i] & 0xc0) != 0x80;
	return columns;
}

static const char digit_pairs[] = "00010203040506070809"
				  "10111213141516171819"
				  "20212223242526272829"
				  "30313233343536373839"
				  "40414243444546474849"
				  "50515253545556575859"
				  "60616263646566676869"
				  "70717273747576777879"
				  "80818283848586878889"
				  "90919293949596979899";

/*
 * Returns the number of digits. Estimates it from the number of bits, then corrects it by a power
 * of ten.
 */
static unsigned digit_count(uint64_t value)
{
	static const uint64_t powers[] = {0,
					  10,
					  100,
					  1000,
					  10000,
					  100000,
					  1000000,
					  10000000,
					  100000000,
					  1000000000,
					  UINT64_C(10000000000),
					  UINT64_C(100000000000),
					  UINT64_C(1000000000000),
					  UINT64_C(10000000000000),
					  UINT64_C(100000000000000),
					  UINT64_C(1000000000000000),
					  UINT64_C(10000000000000000),
					  UINT64_C(100000000000000000),
					  UINT64_C(1000000000000000000),
					  UINT64_C(10000000000000000000)};
	/* 1233 / 4096 is just above log10(2). */
	unsigned guess = (64 - (unsigned)__builtin_clzll(value | 1)) * 1233 >> 12;

	return guess + (value >= powers[guess]);
}

char *text_u64(char *out, uint64_t value)
{
	char *end = out + digit_count(value);
	char *d = end;
	uint32_t rest;

	for (; value > UINT32_MAX; value /= 100) {
		d -= 2;
		memcpy(d, digit_pairs + value % 100 * 2, 2);
	}
	/* Most numbers are small. They are divided in fewer instructions. */
	for (rest = (uint32_t)value; rest >= 100; rest /= 100) {
		d -= 2;
		memcpy(d, digit_pairs + rest % 100 * 2, 2);
	}
	if (rest >= 10)
		memcpy(out, digit_pairs + rest * 2, 2);
	else
		*out = (char)('0' + rest);
	return end;
}

char *text_us(char *out, int64_t ns)
{
	uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	uint32_t decimals = (uint32_t)(size % 1000);

	if (ns < 0)
		*out++ = '-';
	out = text_u64(out, size / 1000);
	*out++ = '.';
	*out++ = (char)('0' + decimals / 100);
	memcpy(out, digit_pairs + decimals % 100 * 2, 2);
	return out + 2;
}

/* The end of an absolute path in a message. Paths may have spaces. */
static size_t path_length(const char *path)
{
	size_t length = 0;

	while (path[length] && !strchr("'\"()", path[length]) &&
	       !(strchr(":;,", path[length]) && (path[length + 1] == ' ' || !path[length + 1])))
		length++;
	return length;
}

void text_hide_folders(char *line)
{
	char *out = line;

	while (*line) {
		size_t length = *line == '/' ? path_length(line) : strcspn(line, " '\"()=:");
		const char *word = line, *file = memrchr(word, '/', length);

		line += length;
		/* Not "GB/s". */
		if (file && (*word == '/' || length - (size_t)(file - word) > 4)) {
			length -= (size_t)(file + 1 - word);
			word = file + 1;
		}
		memmove(out, word, length);
		out += length;
		if (*line)
			*out++ = *line++;
	}
	*out = '\0';
}
