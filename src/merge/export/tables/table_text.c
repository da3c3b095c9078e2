/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/exporter.h"

void table_format_cell(char out[FIGURE_BYTES], enum cell_type type, const struct cell *cell,
		       bool is_short)
{
	const char *(*put_time)(char *out, uint64_t ns) =
		is_short ? format_time_short : format_time;

	switch (type) {
	case CELL_NS:
		put_time(out, cell->number);
		break;
	case CELL_MOMENT:
		put_time(out, cell->moment_ns > 0 ? (uint64_t)cell->moment_ns : 0);
		break;
	case CELL_BYTES:
		(is_short ? format_bytes_short : format_bytes)(out, cell->number);
		break;
	case CELL_SHARE:
		format_share(out, cell->part, cell->whole);
		break;
	case CELL_BANDWIDTH:
		snprintf(out, FIGURE_BYTES, "%.3f GB/s", (double)cell->part / (double)cell->whole);
		break;
	case CELL_TEXT:
	case CELL_WORD:
		snprintf(out, FIGURE_BYTES, "%.*s", (int)cell->length, cell->text);
		break;
	default:
		format_count(out, cell->number);
	}
}

/* Writes a name around a path, or an ellipsis if the rest of the line would not fit. */
static void put_root(struct output *out, const struct names *names, uint32_t name, size_t reserved)
{
	size_t length;
	const char *text = names_text(names, name, &length);

	if (put_room(out) < text_columns(text, length) + 1 + PATH_COLUMNS_MIN + reserved)
		text = ELLIPSIS;
	output_format(out, "%s;", text);
}

static void put_path_between(struct output *out, const struct cell *cell)
{
	const struct names *names = &cell->paths->names;
	size_t length;
	const char *leaf = names_text(names, cell->leaf, &length);

	if (cell->root != NAME_EMPTY)
		put_root(out, names, cell->root, length + 1);
	if (cell->node == PATH_ROOT)
		output_format(out, FRAME_UNATTRIBUTED);
	else
		put_path(out, cell->paths, cell->node, text_columns(leaf, length) + 1);
	output_format(out, ";%s\n", leaf);
}

/* Writes text that may have any bytes, shortened if the line is too narrow. */
static void put_clean(struct output *out, const struct cell *cell)
{
	char *text = xt_strndup(cell->text, cell->length), *clean = text_clean_copy(text);

	if (cell->short_length && out->columns &&
	    column_of(out) + text_columns(clean, strlen(clean)) > out->columns &&
	    column_of(out) + text_columns(text, cell->short_length) <= out->columns) {
		free(clean);
		text[cell->short_length] = '\0';
		clean = text_clean_copy(text);
	}
	if (cell->is_wrapped)
		put_words(out, clean, 0, column_of(out), columns_of_line(out));
	else
		put_cell(out, clean, strlen(clean));
	free_all(clean, text);
}

/* The path of a place has a line of its own. */
static void put_place_path(struct output *out, const struct cell *cell)
{
	if (cell->node == PATH_ROOT)
		return;
	output_format(out, "\n%*s", ROW_INDENT, "");
	put_path(out, cell->paths, cell->node, 0);
}

/* The last column, which takes the rest of the line. */
static void put_label(struct output *out, enum cell_type type, const struct cell *cell)
{
	if (type == CELL_PATH && cell->leaf != NAME_EMPTY) {
		put_path_between(out, cell);
	} else if (type == CELL_PATH) {
		put_path_row(out, cell->paths, cell->node);
	} else if (type == CELL_TEXTS) {
		char *joined = cell_joined(cell, ", ");

		put_words(out, joined, 0, column_of(out), columns_of_line(out));
		output_text(out, "\n", 1);
		free(joined);
	} else {
		put_clean(out, cell);
		if (type == CELL_PLACE)
			put_place_path(out, cell);
		output_text(out, "\n", 1);
	}
}

/* Text that the terminal is too narrow for begins the last column, in lines of its own. */
static bool is_moved(const struct output *out, const struct column_def *column)
{
	return column->type == CELL_TEXT && out->columns && out->columns < column->from;
}

#define SHORT_TIME 8 /* columns of a time in three digits */

/* The columns that are shown, and the last one. */
struct layout {
	const struct column_def *defs[COLUMNS_MAX];
	struct column columns[COLUMNS_MAX];
	size_t count; /* without the last one */
	bool is_short;
};

/* Texts get the room that they need, and short times less than exact ones. */
static unsigned short width_of(const struct column_def *def, size_t text_width, bool is_short)
{
	size_t least = def->type == CELL_TEXT ? text_width
		       : (def->type == CELL_NS || def->type == CELL_MOMENT) && is_short
			       ? SHORT_TIME
			       : def->width;

	return (unsigned short)smaller(larger(least, strlen(def->head)), (size_t)def->width);
}

static void put_head(struct output *out, struct table_rows *rows, size_t shown,
		     struct layout *layout)
{
	char last[FIGURE_BYTES] = "";
	size_t length = 0, widths[COLUMNS_MAX];

	layout->count = table_shown(rows, shown, layout->defs, widths) - 1;
	for (size_t c = 0; c < layout->count; c++) {
		const struct column_def *def = layout->defs[c];

		layout->columns[c] =
			(struct column){def->head, width_of(def, widths[c], layout->is_short),
					def->from, def->type == CELL_TEXT};
		if (is_moved(out, def))
			length += (size_t)snprintf(last + length, sizeof(last) - length, "%s, ",
						   def->head);
	}
	snprintf(last + length, sizeof(last) - length, "%s", layout->defs[layout->count]->head);
	put_heads(out, layout->columns, layout->count, last);
}

static void table_text_put_row(struct output *out, struct table_rows *rows, size_t row,
			       const struct layout *layout)
{
	char texts[COLUMNS_MAX][FIGURE_BYTES];
	const char *figures[COLUMNS_MAX];
	struct cell cells[COLUMNS_MAX];
	const struct column_def *last = layout->defs[layout->count];

	table_row(rows, row, cells);
	for (size_t c = 0; c < layout->count; c++) {
		const struct cell *cell = &cells[layout->defs[c] - rows->def->columns];

		strcpy(texts[c], "-");
		if (!cell->is_absent)
			table_format_cell(texts[c], layout->defs[c]->type, cell, layout->is_short);
		figures[c] = texts[c];
	}
	put_figures(out, layout->columns, layout->count, figures);
	for (size_t c = 0; c < layout->count; c++) {
		if (!is_moved(out, layout->defs[c]))
			continue;
		put_words(out, texts[c], 0, ROW_INDENT, out->columns);
		output_format(out, "\n%*s", ROW_INDENT, "");
	}
	put_label(out, last->type, &cells[last - rows->def->columns]);
	if (rows->def->inner && rows->def->inner->shows) {
		struct table_rows inner = table_open_inner(rows);

		for (size_t r = 0; r < inner.count; r++)
			table_text_put_row(out, &inner, r, layout);
		table_close(&inner);
	}
}

void table_put_text(struct sink *sink, const struct run *run, const struct table_def *def,
		    bool has_title)
{
	struct output *out = &sink->out;
	struct table_rows rows = table_open(def, run);
	size_t shown = def->is_whole ? rows.count : rows_to_show(rows.count, sink->settings);
	struct layout layout = {.is_short = !sink->settings->tables.has_all};
	const char *notes[NOTES_MAX];
	char count[COUNT_BYTES];

	if (rows.count) {
		if (has_title)
			put_top_title(out, def->title, shown, rows.count);
		for (size_t n = def->notes ? def->notes(run, notes) : 0, i = 0; i < n; i++)
			put_note(out, notes[i]);
		put_head(out, &rows, shown, &layout);
	}
	for (size_t r = 0; r < shown; r++)
		table_text_put_row(out, &rows, r, &layout);
	if (rows.left_out_count) {
		format_count(count, rows.left_out_count);
		output_format(out, "%12s  %s\n", count, def->left_out_text);
	}
	table_close(&rows);
}
