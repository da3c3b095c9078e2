/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all tables of the summary have in common.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"
#include "merge/export/summary.h"

#define PATH_COLUMNS	 150 /* of a call path */
#define PATH_COLUMNS_MIN 20
#define TEXT_TOP_DEFAULT 10

void put_words(struct output *out, const char *text, size_t first, size_t indent, size_t columns)
{
	const char *start = text;
	size_t column = first;

	output_format(out, "%*s", (int)first, "");
	while (*text) {
		size_t length = strcspn(text, " ");
		size_t width = text_columns(text, length);

		if (text > start && column + 1 + width > columns) {
			output_format(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (text > start) {
			output_text(out, " ", 1);
			column++;
		}
		output_text(out, text, length);
		column += width;
		text += length + (text[length] == ' ');
	}
}

void format_weight(char *out, enum weight weight, uint64_t value)
{
	if (weight_specs[weight].is_time)
		format_time(out, value);
	else if (weight == WEIGHT_COUNT)
		format_count(out, value);
	else
		format_bytes(out, value);
}

void put_style(struct output *out, enum style style)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "\033[0m", [STYLE_TITLE] = "\033[1m",  [STYLE_HEAD] = "\033[2m",
		[STYLE_BAR] = "\033[34m",  [STYLE_ALARM] = "\033[33m",
	};

	if (out->has_colours)
		output_text(out, codes[style], strlen(codes[style]));
}

/* The columns that the line has so far, as far as it is in the buffer, without codes for colours. */
static size_t column_of(const struct output *out)
{
	const char *line = memrchr(out->buffer, '\n', out->used);
	size_t column = 0;

	line = line ? line + 1 : out->buffer;
	for (const char *p = line; p < out->buffer + out->used; p++) {
		if (*p == '\033') {
			while (p + 1 < out->buffer + out->used && *p != 'm')
				p++;
			continue;
		}
		column += ((uint8_t)*p & 0xc0) != 0x80;
	}
	return column;
}

size_t put_room(const struct output *out)
{
	size_t column = column_of(out);

	if (!out->columns)
		return PATH_COLUMNS;
	return column + PATH_COLUMNS_MIN < out->columns ? out->columns - column : PATH_COLUMNS_MIN;
}

size_t put_elided(struct output *out, const char *text, size_t length, size_t columns)
{
	size_t whole = text_columns(text, length), head, tail, i, seen = 0;

	if (whole <= columns) {
		output_text(out, text, length);
		return whole;
	}
	head = (columns - 1) / 2;
	tail = columns - 1 - head;
	for (i = 0; i < length && (seen < head || ((uint8_t)text[i] & 0xc0) == 0x80); i++)
		seen += ((uint8_t)text[i] & 0xc0) != 0x80;
	output_text(out, text, i);
	output_text(out, ELLIPSIS, strlen(ELLIPSIS));
	for (seen = whole, i = 0; seen > tail || ((uint8_t)text[i] & 0xc0) == 0x80; i++)
		seen -= ((uint8_t)text[i + 1] & 0xc0) != 0x80;
	output_text(out, text + i, length - i);
	return columns;
}

void put_count(struct output *out, const char *what, uint64_t value)
{
	char count[COUNT_BYTES];

	format_count(count, value);
	output_format(out, "  %-52s %16s\n", what, count);
}

void put_title(struct output *out, const char *title, size_t shown, size_t all)
{
	output_text(out, "\n", 1);
	put_style(out, STYLE_TITLE);
	output_text(out, title, strlen(title));
	put_style(out, STYLE_PLAIN);
	if (shown < all)
		output_format(out, " (top %zu of %zu)", shown, all);
	output_text(out, "\n", 1);
}

size_t put_limit(size_t count, const struct settings *settings)
{
	size_t top = settings->top_count ? settings->top_count : TEXT_TOP_DEFAULT;

	return count < top ? count : top;
}
