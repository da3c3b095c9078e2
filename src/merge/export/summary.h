/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the summary: numbers, call paths and heads as all of them have them, and what the
 * files of the summary do for each other.
 */
#ifndef XT_MERGE_SUMMARY_H
#define XT_MERGE_SUMMARY_H

#include "merge/base/figures.h"
#include "merge/exporter.h"
#include "merge/sums/calls.h"

/* The state of the sink. */
struct summary {
	struct calls calls;
};

/* A value in the unit of its weight, into TIME_BYTES. */
void format_weight(char *out, enum weight weight, uint64_t value);

enum style { STYLE_PLAIN, STYLE_TITLE, STYLE_HEAD, STYLE_BAR, STYLE_ALARM };

/* How what follows looks; nothing where the output is no terminal with colours. */
void put_style(struct output *out, enum style style);

/* The columns that are left in the line: of the terminal, or those that a path has elsewhere. */
size_t put_room(const struct output *out);

/* Are there so few columns that tables leave out what matters less? */
static inline bool put_is_narrow(const struct output *out)
{
	return out->columns && out->columns < 120;
}

/* Writes text, its middle left out if it is too wide. Returns the columns it took. */
size_t put_elided(struct output *out, const char *text, size_t length, size_t columns);

#define ELLIPSIS "\xe2\x80\xa6"

/* Writes as many of the frames of a path as there is room for, from the innermost on, but of Python the
 * innermost few in any case (summary_path.c). 0 or -ENOMEM. */
int put_path(struct output *out, const struct paths *paths, uint32_t node);

/* Words, of which no line takes more columns if it can be helped; the first line begins with so many
 * spaces, the others with indent. No end of line follows. */
void put_words(struct output *out, const char *text, size_t first, size_t indent, size_t columns);

/* A line of the overview. */
void put_count(struct output *out, const char *what, uint64_t value);

/* The title of a table, with how many of its rows are shown. */
void put_title(struct output *out, const char *title, size_t shown, size_t all);

/* How many of the rows are to be shown. */
size_t put_limit(size_t count, const struct settings *settings);

/* The tables of API calls, and of those that failed (summary_calls.c). 0 or -ENOMEM. */
int summary_put_calls(struct sink *sink, const struct run *run);

/* The tree of call paths (summary_tree.c). 0 or -ENOMEM. */
int summary_put_tree(struct sink *sink, const struct run *run);

/* The tables of memory (summary_memory.c). 0 or -ENOMEM. */
int summary_put_memory(struct sink *sink, const struct run *run);

/* The table of NVTX ranges (summary_calls.c). 0 or -ENOMEM. */
int summary_put_ranges(struct sink *sink, const struct run *run);

/* The table of copies and sets (summary_calls.c). */
void summary_put_transfers(struct sink *sink, const struct run *run);

#endif
