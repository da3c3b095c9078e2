/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes rows through the prepared statements.
 */
#ifndef XT_MERGE_SQLITE_ROWS_H
#define XT_MERGE_SQLITE_ROWS_H

#include "merge/export/sqlite/sqlite_state.h"

/* Writes a row of the bound values. Errors are kept in the output (see output.h). */
void sqlite_put(struct sink *sink, enum statement statement);

/* Bind a value to a column, counted from 1. */
void sqlite_text(struct sqlite *s, enum statement statement, int column, const char *text);

/* The same for text from the traced program, as valid UTF-8. */
void sqlite_clean_text(struct sqlite *s, enum statement statement, int column, const char *text);
static inline void sqlite_number(struct sqlite *s, enum statement statement, int column,
				 int64_t value)
{
	sqlite3_bind_int64(s->statements[statement], column, value);
}
static inline void sqlite_null(struct sqlite *s, enum statement statement, int column)
{
	sqlite3_bind_null(s->statements[statement], column);
}

/* Stores the first SQLite error in the output. */
void sqlite_note_error(struct sink *sink, int result);

#endif
