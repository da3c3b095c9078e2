/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the summary: numbers, call paths and heads as all of them have them, and what the
 * files of the summary do for each other.
 */
#ifndef XT_MERGE_SUMMARY_TEXT_H
#define XT_MERGE_SUMMARY_TEXT_H

#include "merge/base/number_format.h"
#include "merge/exporter.h"

/* A value in the unit of its weight, into TIME_BYTES. */
void format_weight(char *out, enum weight weight, uint64_t value);

#define SHARE_BYTES 16

/* "26.4 %" */
void format_share(char *out, double percent);

enum style { STYLE_PLAIN, STYLE_TITLE, STYLE_HEAD, STYLE_BAR, STYLE_ALARM };

/* How what follows looks; nothing where the output is no terminal with colours. */
void put_style(struct output *out, enum style style);

#define PATH_COLUMNS_MIN 12 /* a path has so many in any case */

/* The columns that the line has so far, as far as it is in the buffer, without codes for colours. */
size_t column_of(const struct output *out);

/* The columns that are left in the line: of the terminal, or those that a path has elsewhere. */
size_t put_room(const struct output *out);

/* A column of figures. */
struct column {
	const char *head;
	unsigned short columns; /* of a figure */
	unsigned short from;	/* so narrow a terminal still has it; 0: any */
	bool is_left;		/* words: not aligned with their ends */
};

/* The heads of a table's columns, and of the last, which has what is left of the line. */
void put_heads(struct output *out, const struct column *columns, size_t count, const char *last);

/* A row's figures, one for each column, those for which there is no room left out. */
void put_figures(struct output *out, const struct column *columns, size_t count,
		 const char *const *figures);

/* Writes text, its middle left out if it is too wide. Returns the columns it took. */
size_t put_elided(struct output *out, const char *text, size_t length, size_t columns);

#define ELLIPSIS "\xe2\x80\xa6"

/* Words, of which no line takes more columns; the first begins with so many spaces, the others with indent. No end
 * of line follows. */
void put_words(struct output *out, const char *text, size_t first, size_t indent, size_t columns);

/* A line of the overview: what it is, which may begin with spaces, and how much. */
void put_fact(struct output *out, const char *what, const char *figure);
void put_count(struct output *out, const char *what, uint64_t value);

/* Words of a line that is indented by two, and its end. */
void put_note(struct output *out, const char *text);

/* The title of a table, and more of it in plain letters. */
void put_title(struct output *out, const char *title, const char *more);

/* … which is how many of its rows are shown. */
void put_top_title(struct output *out, const char *title, size_t shown, size_t all);

/* How many of the rows are to be shown. */
size_t put_limit(size_t count, const struct settings *settings);

#endif
