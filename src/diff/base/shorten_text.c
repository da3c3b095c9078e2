/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of a profile, bounded; see shown_text.h.
 */
#include "diff/base/shorten_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MARK_BYTES 64

/* FNV-1a. */
static uint64_t hash(const char *text, size_t length)
{
	uint64_t value = 0xcbf29ce484222325;

	for (size_t i = 0; i < length; i++)
		value = (value ^ (uint8_t)text[i]) * 0x100000001b3;
	return value;
}

static bool is_inside_character(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

void shorten_text(char *text, size_t limit_bytes)
{
	size_t length = strlen(text), head, tail, mark_bytes;
	char mark[MARK_BYTES];

	if (length <= limit_bytes)
		return;
	mark_bytes = (size_t)snprintf(mark, sizeof(mark),
				      "\xe2\x80\xa6[%zu bytes, %016" PRIx64 "]\xe2\x80\xa6", length,
				      hash(text, length));
	head = (limit_bytes - mark_bytes) * 2 / 3;
	tail = limit_bytes - mark_bytes - head;
	while (head && is_inside_character(text[head]))
		head--;
	while (tail && is_inside_character(text[length - tail]))
		tail--;
	memmove(text + head + mark_bytes, text + length - tail, tail + 1);
	memcpy(text + head, mark, mark_bytes);
}
