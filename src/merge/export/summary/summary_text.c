/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formatting that all tables of the summary share.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "merge/base/text.h"
#include "merge/sums/settings.h"
#include "merge/export/summary/summary_text.h"

#define PATH_COLUMNS	 150 /* of a call path, without a terminal */
#define TEXT_TOP_DEFAULT 10
#define NARROW_FIGURE	 10 /* narrower columns keep their width */
#define NARROW_COLUMNS	 60 /* narrower terminals get closer columns */
#define GAP_COLUMNS	 2  /* between columns */
#define LINE_COLUMNS	 52 /* of a label in the overview */
#define FIGURE_COLUMNS	 16
#define FIGURE_NARROW	 12
#define CELL_LINES	 3  /* of a text that is too wide for its row */
#define TOP_BYTES	 64 /* "(top 10 of 43)" */

size_t column_of(const struct output *out)
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

/* Writes a word, broken if it is wider than the line. Returns the column after it. */
static size_t put_word(struct output *out, const char *word, size_t length, size_t column,
		       size_t indent, size_t columns)
{
	for (size_t i = 0, bytes; i < length; i += bytes) {
		for (bytes = 1; i + bytes < length && ((uint8_t)word[i + bytes] & 0xc0) == 0x80;)
			bytes++;
		/* Names in files are searched for, so they stay whole. */
		if (out->columns && column >= columns && column > indent) {
			output_format(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		output_text(out, word + i, bytes);
		column++;
	}
	return column;
}

void put_words(struct output *out, const char *text, size_t first, size_t indent, size_t columns)
{
	const char *start = text;
	size_t column = column_of(out) + first;

	output_format(out, "%*s", (int)first, "");
	while (*text) {
		size_t length = strcspn(text, " "), width;

		if (!strncmp(text + length, " %", 2)) /* keep it with its number */
			length += 1 + strcspn(text + length + 1, " ");
		width = text_columns(text, length);
		if (text > start && column + 1 + width > columns) {
			output_format(out, "\n%*s", (int)indent, "");
			column = indent;
		} else if (text > start) {
			output_text(out, " ", 1);
			column++;
		}
		column = put_word(out, text, length, column, indent, columns);
		text += length + (text[length] == ' ');
	}
}

void format_weight(char *out, enum weight weight, uint64_t value)
{
	if (weight_specs[weight].is_time)
		format_time(out, value);
	else if (weight == WEIGHT_COUNT || weight == WEIGHT_UNTIMED)
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

void put_cell(struct output *out, const char *text, size_t length)
{
	size_t room = out->columns > ROW_INDENT ? out->columns - ROW_INDENT : 1, end = 0, next = 0;
	char *shown = NULL;

	if (!out->columns || column_of(out) + text_columns(text, length) <= out->columns) {
		output_text(out, text, length);
		return;
	}
	/* Wrapping leaves up to a word of each line empty. */
	while (next < length && (!end || text_columns(text, next) <= (CELL_LINES - 1) * room)) {
		end = next;
		next += 1 + strcspn(text + next, " ");
		next = next < length ? next : length;
	}
	end = next < length ? end : length;
	if (asprintf(&shown, "%.*s%s", (int)end, text, end < length ? ELLIPSIS : "") < 0) {
		put_elided(out, text, length, put_room(out));
		return;
	}
	while (out->used && out->buffer[out->used - 1] == ' ')
		out->used--;
	output_format(out, "\n%*s", ROW_INDENT, "");
	put_words(out, shown, 0, ROW_INDENT, out->columns);
	free(shown);
}

static bool has_column(const struct output *out, const struct column *column)
{
	return !out->columns || out->columns >= column->from;
}

static int column_width(const struct output *out, const struct column *column)
{
	size_t head = strlen(column->head);

	if (!out->columns || out->columns >= NARROW_COLUMNS || column->columns < NARROW_FIGURE)
		return column->columns;
	return (int)(head + 2 > column->columns ? head : column->columns - 2u);
}

void put_heads(struct output *out, const struct column *columns, size_t count, const char *last)
{
	for (size_t c = 0; c < count; c++) {
		const char *head = columns[c].head;
		size_t bytes = strlen(head);
		int width =
			column_width(out, &columns[c]) + (int)(bytes - text_columns(head, bytes));

		if (has_column(out, &columns[c]))
			output_format(out, "%*s%*s", columns[c].is_left ? -width : width, head,
				      GAP_COLUMNS, "");
	}
	if (!out->columns || column_of(out) + strlen(last) <= out->columns)
		output_text(out, last, strlen(last));
	output_text(out, "\n", 1);
}

void put_figures(struct output *out, const struct column *columns, size_t count,
		 const char *const *figures)
{
	for (size_t c = 0; c < count; c++) {
		int width = column_width(out, &columns[c]);

		if (has_column(out, &columns[c]))
			output_format(out, "%*s%*s", columns[c].is_left ? -width : width,
				      figures[c], GAP_COLUMNS, "");
	}
}

void put_fact(struct output *out, const char *what, const char *figure)
{
	size_t indent = strspn(what, " ") + 2, width = FIGURE_COLUMNS, columns = 2 + LINE_COLUMNS;
	int pad;

	if (out->columns && out->columns <= columns + width) {
		width = FIGURE_NARROW;
		columns = out->columns - width - 1;
	}
	put_words(out, what + indent - 2, indent, indent + 2, out->columns ? columns : SIZE_MAX);
	pad = (int)(columns + 1 + width) -
	      (int)(column_of(out) + text_columns(figure, strlen(figure)));
	if (pad < 2 && out->columns) {
		output_text(out, "\n", 1);
		put_words(out, figure, indent + 2, indent + 2, out->columns);
	} else {
		output_format(out, "%*s%s", pad < 2 ? 2 : pad, "", figure);
	}
	output_text(out, "\n", 1);
}

void put_count(struct output *out, const char *what, uint64_t value)
{
	char count[COUNT_BYTES];

	format_count(count, value);
	put_fact(out, what, count);
}

void put_note(struct output *out, const char *text)
{
	put_words(out, text, 2, 4, out->columns ? out->columns : SIZE_MAX);
	output_text(out, "\n", 1);
}

void put_title(struct output *out, const char *title, const char *more)
{
	size_t columns = out->columns ? out->columns : SIZE_MAX;

	output_text(out, "\n", 1);
	put_style(out, STYLE_TITLE);
	put_words(out, title, 0, 2, columns);
	put_style(out, STYLE_PLAIN);
	if (more[0] && column_of(out) + 1 + text_columns(more, strlen(more)) > columns) {
		output_text(out, "\n", 1);
		put_words(out, more, 2, 4, columns);
	} else if (more[0]) {
		output_format(out, " %s", more);
	}
	output_text(out, "\n", 1);
}

void put_top_title(struct output *out, const char *title, size_t shown, size_t all)
{
	char more[TOP_BYTES] = "";

	if (shown < all)
		snprintf(more, sizeof(more), "(top %zu of %zu)", shown, all);
	put_title(out, title, more);
}

size_t rows_to_show(size_t count, const struct settings *settings)
{
	size_t top = settings->top_count ? settings->top_count : TEXT_TOP_DEFAULT;

	return count < top ? count : top;
}
