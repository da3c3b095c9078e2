/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One writer of tables for each format. Each prints any table.
 */
#ifndef XT_MERGE_TABLE_WRITERS_H
#define XT_MERGE_TABLE_WRITERS_H

#include "base/json.h"
#include "merge/tables/table.h"

struct sink;

#define LIST_SEPARATOR "; " /* where a cell is one text */

/* A table of at most --top rows, aligned for a terminal. Nothing if there are no rows. */
void table_put_text(struct sink *sink, const struct run *run, const struct table_def *def,
		    bool has_title);

/* An object with the number of rows, and the rows, at most json->rows_max. */
void table_put_json(struct json *json, const struct run *run, const struct table_def *def);

/* Returns how many of these rows a table of the document has. */
size_t table_rows_shown(const struct json *json, size_t count);

/* At most rows_max rows as Markdown. Text is code. */
void table_put_markdown(struct output *out, const struct run *run, const struct table_def *def,
			size_t rows_max);

/* Writes text in one line, without markup unless it is code. A wider text is cut. */
void markdown_line(struct output *out, const char *text, size_t length, size_t columns,
		   bool is_code);
void markdown_code(struct output *out, const char *text, size_t length);

/* Writes a number with its unit, or short text. is_short: three digits of times and sizes. */
#define FIGURE_BYTES 64
void table_format_cell(char out[FIGURE_BYTES], enum cell_type type, const struct cell *cell,
		       bool is_short);

#endif
