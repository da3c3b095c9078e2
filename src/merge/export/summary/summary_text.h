/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formatting for the text summary: numbers, table headings, wrapped text.
 */
#ifndef XT_MERGE_SUMMARY_TEXT_H
#define XT_MERGE_SUMMARY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "log/base/number_format.h"
#include "merge/base/weights.h"

struct output;
struct paths;
struct settings;

/* Formats a value in the unit of its weight. out has TIME_BYTES. is_short: in three digits. */
void format_weight(char *out, enum weight weight, uint64_t value, bool is_short);

enum style { STYLE_PLAIN, STYLE_TITLE, STYLE_HEAD, STYLE_BAR, STYLE_ALARM };

/* Sets the style of the following text. Does nothing without colours. */
void put_style(struct output *out, enum style style);

#define ROW_INDENT	 8  /* of further lines of a row */
#define PATH_COLUMNS_MIN 12 /* a path always gets this many */

/* Returns the width of the current line so far, without colour codes. Sees only buffered text. */
size_t column_of(const struct output *out);

/* Returns the width of a line, or a default without a terminal. */
size_t columns_of_line(const struct output *out);

/* Returns the columns left in the line, or a default without a terminal. */
size_t put_room(const struct output *out);

/* A column of numbers. */
struct column {
	const char *head;
	unsigned short columns; /* width of a value */
	unsigned short from;	/* shown on terminals at least this wide; 0: always */
	bool is_left;		/* left-aligned text */
};

/* Writes the column headings. last is the heading of the remaining room. */
void put_heads(struct output *out, const struct column *columns, size_t count, const char *last);

/* Writes a value for each column. Omits columns that the terminal is too narrow for. */
void put_figures(struct output *out, const struct column *columns, size_t count,
		 const char *const *figures);

/* Writes text, with its middle elided if it is too wide. Returns its width. */
size_t put_elided(struct output *out, const char *text, size_t length, size_t columns);

#define ELLIPSIS "\xe2\x80\xa6"

/*
 * Ends a row with text. If it is too wide for the line, it gets lines of its own. Words that do not
 * fit there are dropped from the end, but none is cut: it may be a figure or the number of a rank.
 */
void put_cell(struct output *out, const char *text, size_t length);

/*
 * Wraps text at columns. Indents the first line by first and the others by indent. Writes no final
 * newline.
 */
void put_words(struct output *out, const char *text, size_t first, size_t indent, size_t columns);

/* The same, with the middle elided if it takes more than this many lines. */
void put_words_cut(struct output *out, const char *text, size_t first, size_t indent, size_t lines);

/* Writes a line of the overview. what may begin with spaces. */
void put_fact(struct output *out, const char *what, const char *figure);
void put_count(struct output *out, const char *what, uint64_t value);

/* Writes an indented, wrapped line. */
void put_note(struct output *out, const char *text);

/* Writes a table title, followed by more in plain style. */
void put_title(struct output *out, const char *title, const char *more);

/* Writes a table title, with "(top 10 of 43)" if rows are omitted. */
void put_top_title(struct output *out, const char *title, size_t shown, size_t all);

/* Returns how many of `count` rows to show: at most --top. */
size_t rows_to_show(size_t count, const struct settings *settings);

/*
 * Writes the frames of a call path that fit in the line. The user's own frames and the innermost
 * frames come first. Leaves reserved columns of a terminal's line free.
 */
void put_path(struct output *out, const struct paths *paths, uint32_t node, size_t reserved);

/* The same for count consecutive nodes of one path, in room columns. */
void put_chain(struct output *out, const struct paths *paths, const uint32_t *chain, size_t count,
	       size_t room);

/*
 * Writes the path at the end of a table row. A terminal too narrow for the whole path gets its last
 * frame, and the callers in the next line.
 */
void put_path_row(struct output *out, const struct paths *paths, uint32_t node);

#endif
