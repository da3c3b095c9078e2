/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "merge/export/summary/summary_json.h"
#include "merge/export/tables/table_writers.h"

#define ROWS_DEFAULT 1000 /* of a table without --top */

size_t table_rows_shown(const struct json *json, size_t count)
{
	size_t top = json->rows_max ? json->rows_max : ROWS_DEFAULT;

	return count < top ? count : top;
}

static void put_list(struct json *json, const char *key, const struct cell *cell, bool are_numbers)
{
	json_begin_array(json, key);
	for (size_t i = 0; i < cell->length; i += strlen(cell->text + i) + 1)
		if (are_numbers)
			json_u64(json, NULL, strtoull(cell->text + i, NULL, 10));
		else
			json_string(json, NULL, cell->text + i);
	json_end_array(json);
}

static void put_cell(struct json *json, const struct column_def *column, const struct cell *cell)
{
	const char *key = column->json ? column->json : column->name;

	if (cell->is_absent)
		return;
	switch (column->type) {
	case CELL_MOMENT:
		json_i64(json, key, cell->moment_ns);
		break;
	case CELL_FLAG:
		json_bool(json, key, cell->number);
		break;
	case CELL_REAL:
		json_double(json, key, cell->real);
		break;
	case CELL_TEXT:
	case CELL_WORD:
		json_text(json, key, cell->text, cell->length);
		break;
	case CELL_TEXTS:
	case CELL_NUMBERS:
	case CELL_VALUES:
		put_list(json, key, cell, column->type == CELL_NUMBERS || cell->are_numbers);
		break;
	case CELL_PATH:
		table_put_json_path(json, key, cell);
		break;
	default:
		json_u64(json, key, cell->number);
	}
}

static const char *key_of(const struct table_def *def)
{
	const char *place = def->json.name ? def->json.name : def->name, *dot = strrchr(place, '.');

	return dot ? dot + 1 : place;
}

static void put_rows(struct json *json, const char *key, struct table_rows *rows, size_t shown)
{
	const struct table_def *def = rows->def;
	struct cell cells[COLUMNS_MAX];

	json_begin_array(json, key);
	if (def->json.form == FORM_TABLE)
		json->lines_depth = json->depth;
	for (size_t r = 0; r < shown; r++) {
		json_begin_object(json, NULL);
		table_row(rows, r, cells);
		for (size_t c = 0; c < def->column_count; c++)
			if (column_is_member(&def->columns[c]))
				put_cell(json, &def->columns[c], &cells[c]);
		if (def->json.more)
			def->json.more(json, rows);
		if (def->inner) {
			struct table_rows inner = table_open_inner(rows);

			put_rows(json, key_of(def->inner), &inner, inner.count);
			table_close(&inner);
		}
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_map(struct json *json, const char *key, struct table_rows *rows)
{
	struct cell cells[COLUMNS_MAX];

	json_begin_object(json, key);
	for (size_t r = 0; r < rows->count; r++) {
		table_row(rows, r, cells);
		json_u64(json, cells[1].text, cells[0].number);
	}
	json_end_object(json);
}

static void put_texts(struct json *json, const char *key, struct table_rows *rows)
{
	struct cell cells[COLUMNS_MAX];

	json_begin_array(json, key);
	for (size_t r = 0; r < rows->count; r++) {
		table_row(rows, r, cells);
		json_text(json, NULL, cells[0].text, cells[0].length);
	}
	json_end_array(json);
}

/* Lists of the document are complete, unless they have a limit of their own. */
static size_t rows_shown(const struct json *json, const struct table_rows *rows)
{
	const struct table_def *def = rows->def;
	size_t most = def->json.rows_max ? def->json.rows_max : SIZE_MAX;

	if (def->json.form == FORM_TABLE && !def->is_whole && !def->json.is_complete)
		most = table_rows_shown(json, rows->count);
	return rows->count < most ? rows->count : most;
}

void table_put_json(struct json *json, const struct run *run, const struct table_def *def)
{
	struct table_rows rows = table_open(def, run);
	size_t shown = rows_shown(json, &rows);
	unsigned lines_depth = json->lines_depth;

	if (def->json.form == FORM_MAP) {
		put_map(json, key_of(def), &rows);
	} else if (def->json.form == FORM_TEXTS) {
		put_texts(json, key_of(def), &rows);
	} else if (def->json.form == FORM_LIST) {
		put_rows(json, key_of(def), &rows, shown);
	} else {
		json_begin_object(json, key_of(def));
		json_u64(json, "row_count", rows.count);
		if (def->json.head)
			def->json.head(json, run);
		if (def->json.left_out)
			json_u64(json, def->json.left_out, rows.left_out_count);
		put_rows(json, "rows", &rows, shown);
		json->lines_depth = lines_depth;
		json_end_object(json);
	}
	table_close(&rows);
}
