/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/tables/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct table_rows table_open(const struct table_def *def, const struct run *run)
{
	struct table_rows rows = {.def = def, .run = run};

	def->open(&rows);
	return rows;
}

void table_row(struct table_rows *rows, size_t row, struct cell *cells)
{
	memset(cells, 0, rows->def->column_count * sizeof(*cells));
	rows->def->row(rows, row, cells);
}

void table_add(struct table_rows *rows, size_t index)
{
	xt_grow(&rows->memory, &rows->capacity, rows->count + 1, sizeof(size_t));
	((size_t *)rows->memory)[rows->count++] = index;
}

void table_close(struct table_rows *rows)
{
	if (rows->def->close)
		rows->def->close(rows);
	free(rows->memory);
}

struct cell cell_text(const char *text)
{
	return text ? (struct cell){.text = text, .length = strlen(text)} : CELL_ABSENT;
}

struct cell cell_name(const struct names *names, uint32_t name)
{
	struct cell cell = {0};

	cell.text = names_text(names, name, &cell.length);
	return cell;
}
