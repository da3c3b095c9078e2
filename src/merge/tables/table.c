/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tables/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "merge/read/inputs.h"

struct table_rows table_open(const struct table_def *def, const struct run *run)
{
	struct table_rows rows = {.def = def, .run = run};

	def->open(&rows);
	return rows;
}

/* Cells that a row is being filled with. */
struct cells {
	const struct table_def *def;
	struct cell *list;
	size_t next; /* at most that of the next cell that is no member of the record */
};

void cells_put(struct cells *cells, struct cell cell)
{
	while (cells->def->columns[cells->next].member_bytes)
		cells->next++;
	cells->list[cells->next++] = cell;
}

size_t table_count(const struct run *run, const struct table_def *def)
{
	struct table_rows rows = table_open(def, run);
	size_t count = rows.count;

	table_close(&rows);
	return count;
}

static void free_texts(struct table_rows *rows)
{
	while (rows->text_count)
		free(rows->texts[--rows->text_count]);
}

static struct cell cell_of_record(const struct column_def *column, const void *record)
{
	const void *member = (const char *)record + column->offset;
	const char *text;

	if (column->type == CELL_TEXT) {
		text = *(const char *const *)member;
		return cell_text(column->is_optional && !text[0] ? NULL : text);
	}
	return cell_number(column->member_bytes == sizeof(uint32_t) ? *(const uint32_t *)member
								    : *(const uint64_t *)member);
}

void table_row(struct table_rows *rows, size_t row, struct cell *cells)
{
	const struct table_def *def = rows->def;
	struct cells others = {def, cells, 0};

	free_texts(rows);
	rows->index = rows->chosen.list ? rows->chosen.list[row] : row;
	rows->record = rows->records ? rows->records + rows->index * rows->record_bytes : NULL;
	memset(cells, 0, def->column_count * sizeof(*cells));
	for (size_t c = 0; c < def->column_count; c++)
		if (def->columns[c].member_bytes)
			cells[c] = cell_of_record(&def->columns[c], rows->record);
	if (def->row)
		def->row(rows, &others);
}

struct table_rows table_open_inner(const struct table_rows *rows)
{
	struct table_rows inner = {
		.def = rows->def->inner, .run = rows->run, .outer = rows->record};

	inner.def->open(&inner);
	return inner;
}

void table_set_records(struct table_rows *rows, const void *records, size_t count, size_t bytes)
{
	rows->records = records;
	rows->count = count;
	rows->record_bytes = bytes;
}

void table_add(struct table_rows *rows, size_t index)
{
	if (!rows->chosen.list)
		rows->count = 0;
	xt_append(rows->chosen.list, rows->count, rows->chosen.capacity, index);
}

void table_close(struct table_rows *rows)
{
	free_all(rows->memory, rows->chosen.list);
	free_texts(rows);
}

/* Finds the widest text of each column, or 1 for another one with a value. */
static void measure(struct table_rows *rows, size_t row_count, size_t widths[COLUMNS_MAX])
{
	struct cell cells[COLUMNS_MAX];

	for (size_t r = 0; r < row_count; r++) {
		table_row(rows, r, cells);
		for (size_t c = 0; c < rows->def->column_count; c++) {
			bool is_text = rows->def->columns[c].type == CELL_TEXT;

			if (!cells[c].is_absent)
				widths[c] =
					larger(widths[c], is_text ? text_columns(cells[c].text,
										 cells[c].length)
								  : (size_t)1);
		}
	}
}

size_t table_shown(struct table_rows *rows, size_t row_count, const struct column_def **columns,
		   size_t *widths)
{
	const struct table_def *def = rows->def;
	const char *name = def->shows;
	size_t count = 0, found[COLUMNS_MAX] = {0};

	measure(rows, row_count, found);
	while (*name) {
		size_t length = strcspn(name, " "), c = 0;

		while (c < def->column_count && (strlen(def->columns[c].name) != length ||
						 strncmp(def->columns[c].name, name, length) != 0))
			c++;
		name += length + (name[length] == ' ');
		if (c == def->column_count || (def->columns[c].is_optional && !found[c] && *name))
			continue;
		widths[count] = found[c];
		columns[count++] = &def->columns[c];
	}
	return count;
}

struct cell cell_text(const char *text)
{
	return text ? (struct cell){.text = text, .length = strlen(text)} : CELL_ABSENT;
}

struct cell cell_owned(struct table_rows *rows, char *text)
{
	rows->texts[rows->text_count++] = text;
	return cell_text(text);
}

void list_add(struct cell_list *list, const char *text)
{
	size_t length = strlen(text) + 1;

	xt_grow(list->texts, list->capacity, list->length + length);
	memcpy(list->texts + list->length, text, length);
	list->length += length;
}

void list_add_number(struct cell_list *list, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	list_add(list, text);
}

struct cell cell_list(struct table_rows *rows, struct cell_list *list)
{
	rows->texts[rows->text_count++] = list->texts;
	return (struct cell){
		.text = list->texts, .length = list->length, .are_numbers = list->are_numbers};
}

char *cell_joined(const struct cell *cell, const char *separator)
{
	size_t length;
	char *text;
	FILE *stream = xt_open_memstream(&text, &length);

	for (size_t i = 0; i < cell->length; i += strlen(cell->text + i) + 1)
		fprintf(stream, "%s%s", i ? separator : "", cell->text + i);
	xt_close_memstream(stream);
	return text;
}

struct cell cell_name(const struct names *names, uint32_t name)
{
	struct cell cell = {0};

	cell.text = names_text(names, name, &cell.length);
	return cell;
}

void cells_put_job(struct cells *cells, const struct input *log)
{
	cells_put(cells, cell_known(log->rank != RANK_UNKNOWN, log->rank));
	cells_put(cells, cell_known(log->local_rank != RANK_UNKNOWN, log->local_rank));
	cells_put(cells, cell_known(log->world_size != RANK_UNKNOWN, log->world_size));
	cells_put(cells, cell_text(log->run[0] ? log->run : NULL));
	cells_put(cells, cell_text(log->batch_job[0] ? log->batch_job : NULL));
}

void json_name(struct json *json, const char *key, const struct names *names, uint32_t name)
{
	size_t length;
	const char *text = names_text(names, name, &length);

	json_text(json, key, text, length);
}

void table_put_json_path(struct json *json, const char *key, const struct cell *cell)
{
	const struct paths *paths = cell->paths;
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(paths, cell->node, &chain, &capacity);

	json_begin_array(json, key);
	if (cell->root != NAME_EMPTY)
		json_name(json, NULL, &paths->names, cell->root);
	for (int d = 0; d < depth; d++)
		json_name(json, NULL, &paths->names, paths->nodes[chain[d]].name);
	json_end_array(json);
	free(chain);
}
