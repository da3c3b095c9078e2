/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables as Markdown, and text that must not become markup.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/tables/table_writers.h"

#define NAME_COLUMNS 160
#define NO_MENTION   "\xe2\x80\x8b" /* a space without width, behind an '@' */

/* An underscore within a word is not markup, as in pytorch_train.py. */
static bool is_markup(const char *text, size_t length, size_t at)
{
	if (text[at] != '_')
		return strchr("\\*<[", text[at]);
	return !at || at + 1 == length || !isalnum((unsigned char)text[at - 1]) ||
	       !isalnum((unsigned char)text[at + 1]);
}

/* Leaves out words at the end if the text is too wide, so that no figure loses its words. */
static void put_sentence_cut(struct output *out, const char *text, size_t length, size_t columns)
{
	size_t kept = length;

	while (kept && text_columns(text, kept) > columns)
		for (kept--; kept && text[kept] != ' ';)
			kept--;
	output_text(out, text, kept);
	if (kept < length)
		output_text(out, " " ELLIPSIS, strlen(" " ELLIPSIS));
}

/* A service such as GitHub notifies the user of this name, even if the '@' is escaped. */
static bool is_mention(const char *text, size_t length, size_t at)
{
	return text[at] == '@' && (!at || !isalnum((unsigned char)text[at - 1])) &&
	       at + 1 < length && isalnum((unsigned char)text[at + 1]);
}

/* Writes text in one line. '|' would end a cell of a table, and '`' would begin or end code. */
void markdown_line(struct output *out, const char *text, size_t length, size_t columns,
		   bool is_code)
{
	size_t bound = text_clean_bound(length), bytes, written = 0;
	char *clean = xt_malloc((2 + sizeof(NO_MENTION)) * bound + 1), *escaped = clean + bound;

	bytes = text_clean(clean, text, length, '`');
	for (size_t i = 0; i < bytes; i++) {
		bool ends = clean[i] == '|' || clean[i] == '\n';

		if (!is_code && is_markup(clean, bytes, i))
			escaped[written++] = '\\';
		escaped[written++] = ends ? '/' : clean[i];
		if (!is_code && is_mention(clean, bytes, i))
			written += (size_t)sprintf(escaped + written, NO_MENTION);
	}
	if (is_code)
		put_elided(out, escaped, written, columns);
	else
		put_sentence_cut(out, escaped, written, columns);
	free(clean);
}

void markdown_code(struct output *out, const char *text, size_t length)
{
	output_text(out, "`", 1);
	markdown_line(out, text, length, NAME_COLUMNS, true);
	output_text(out, "`", 1);
}

static void put_cell_markdown(struct output *out, enum cell_type type, const struct cell *cell)
{
	char figure[FIGURE_BYTES] = "-";

	if (!cell->is_absent && type >= CELL_TEXT) {
		markdown_code(out, cell->text, cell->length);
		return;
	}
	if (!cell->is_absent)
		table_format_cell(figure, type, cell, true);
	output_string(out, figure);
}

static void put_rows_markdown(struct output *out, struct table_rows *rows, size_t row_count,
			      const struct column_def *const *columns, size_t count)
{
	struct cell cells[COLUMNS_MAX];

	for (size_t r = 0; r < row_count; r++) {
		table_row(rows, r, cells);
		for (size_t c = 0; c < count; c++) {
			output_string(out, "| ");
			put_cell_markdown(out, columns[c]->type,
					  &cells[columns[c] - rows->def->columns]);
			output_string(out, " ");
		}
		output_string(out, "|\n");
		if (rows->def->inner && rows->def->inner->shows) {
			struct table_rows inner = table_open_inner(rows);

			put_rows_markdown(out, &inner, inner.count, columns, count);
			table_close(&inner);
		}
	}
}

void table_put_markdown(struct output *out, const struct run *run, const struct table_def *def,
			size_t rows_max)
{
	const struct column_def *columns[COLUMNS_MAX];
	struct table_rows rows = table_open(def, run);
	size_t count, shown = smaller(rows.count, rows_max), widths[COLUMNS_MAX];

	count = table_shown(&rows, shown, columns, widths);
	for (size_t c = 0; c < count; c++)
		output_format(out, "| %s ", columns[c]->head);
	output_string(out, "|\n");
	for (size_t c = 0; c < count; c++)
		output_string(out, column_is_text(columns[c]) ? "| --- " : "| ---: ");
	output_string(out, "|\n");
	put_rows_markdown(out, &rows, shown, columns, count);
	output_string(out, "\n");
	table_close(&rows);
}
