/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/sqlite/sqlite_table_defs.h"

#include <stdlib.h>

#include "base/memory.h"
#include "merge/export/sqlite/sqlite_rows.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/exporter.h"

static bool is_text(const struct column_def *column)
{
	return column->type >= CELL_TEXT;
}

static sqlite3_stmt *create(struct sink *sink, const struct table_def *def)
{
	struct sqlite *s = sink->state;
	sqlite3_str *table = sqlite3_str_new(s->database), *insert = sqlite3_str_new(s->database);
	sqlite3_stmt *statement = NULL;
	const char *comma = "";
	char *sql;

	sqlite3_str_appendf(table, "CREATE TABLE %s(", def->name);
	sqlite3_str_appendf(insert, "INSERT INTO %s VALUES(", def->name);
	for (size_t c = 0; c < def->column_count; c++) {
		const struct column_def *column = &def->columns[c];

		if (!column_is_flat(column))
			continue;
		/* "where" and others are words of SQL. */
		sqlite3_str_appendf(table, "%s\"%w\" %s", comma, column->name,
				    column->type == CELL_REAL ? "REAL"
				    : is_text(column)	      ? "TEXT"
							      : "INTEGER");
		sqlite3_str_appendf(insert, "%s?", comma);
		comma = ", ";
	}
	sqlite3_str_appendall(table, ")");
	sqlite3_str_appendall(insert, ")");
	sql = sqlite3_str_finish(table);
	sqlite_note_error(sink, sqlite3_exec(s->database, sql, NULL, NULL, NULL));
	sqlite3_free(sql);
	sql = sqlite3_str_finish(insert);
	sqlite_note_error(sink, sqlite3_prepare_v2(s->database, sql, -1, &statement, NULL));
	sqlite3_free(sql);
	return statement;
}

static void bind_path(sqlite3_stmt *statement, int place, const struct cell *cell)
{
	size_t length;
	char *text = paths_text(cell->paths, cell->node, &length);

	sqlite3_bind_text(statement, place, text, (int)length, free);
}

static void bind(sqlite3_stmt *statement, int place, enum cell_type type, const struct cell *cell)
{
	if (cell->is_absent)
		sqlite3_bind_null(statement, place);
	else if (type == CELL_PATH)
		bind_path(statement, place, cell);
	else if (type == CELL_TEXTS || type == CELL_NUMBERS || type == CELL_VALUES)
		sqlite3_bind_text(statement, place, cell_joined(cell, LIST_SEPARATOR), -1, free);
	else if (type == CELL_TEXT || type == CELL_WORD)
		sqlite3_bind_text(statement, place, cell->text, (int)cell->length,
				  SQLITE_TRANSIENT);
	else if (type == CELL_REAL)
		sqlite3_bind_double(statement, place, cell->real);
	else if (type == CELL_MOMENT)
		sqlite3_bind_int64(statement, place, cell->moment_ns);
	else
		sqlite3_bind_int64(statement, place, sqlite_limited(cell->number));
}

static void put_table(struct sink *sink, const struct run *run, const struct table_def *def)
{
	sqlite3_stmt *statement = create(sink, def);
	struct table_rows rows = table_open(def, run);
	struct cell cells[COLUMNS_MAX];

	for (size_t r = 0; r < rows.count && !sink->out.error; r++) {
		int place = 1;

		table_row(&rows, r, cells);
		for (size_t c = 0; c < def->column_count; c++)
			if (column_is_flat(&def->columns[c]))
				bind(statement, place++, def->columns[c].type, &cells[c]);
		if (sqlite3_step(statement) != SQLITE_DONE)
			sqlite_note_error(sink, sqlite3_errcode(sqlite3_db_handle(statement)));
		sqlite3_reset(statement);
	}
	table_close(&rows);
	sqlite3_finalize(statement);
}

void sqlite_put_table_defs(struct sink *sink, const struct run *run)
{
	for (size_t t = 0; table_defs[t] && !sink->out.error; t++)
		if (!table_defs[t]->view)
			put_table(sink, run, table_defs[t]);
}
