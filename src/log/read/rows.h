/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed rows of the log, made from xtrace/log_schema.h. Of a kind K there are:
 *
 *   struct xt_row_K      a row: numbers, texts (struct xt_bytes) and lists (struct xt_list)
 *   xt_write_K()           adds a row to a table that has room for it
 *   struct xt_columns_K  the columns of a chunk, looked up once
 *   xt_columns_K()       looks them up
 *   xt_read_K()          the row at an index below xt_chunk_rows()
 *
 * A column that the chunk lacks is 0 or empty. Members that a reader does not use cost nothing:
 * everything is inline, and reads nothing else.
 */
#ifndef XT_LOG_ROWS_H
#define XT_LOG_ROWS_H

#include <string.h>

#include "log/base/table.h"
#include "xtrace/reader.h"

struct xt_list {
	const uint64_t *elements;
	size_t length;
};

/* For each encoding: the type of a member, its column, how to read and to write it. */
#define XT_ROW_U64(column)   uint64_t column;
#define XT_ROW_BYTES(column) struct xt_bytes column;
#define XT_ROW_LIST(column)  struct xt_list column;

#define XT_COLUMN_U64(column) const uint64_t *column;
#define XT_COLUMN_BYTES(column)
#define XT_COLUMN_LIST(column)

#define XT_FIND_U64(column, number) .column = xt_chunk_u64(chunk, number),
#define XT_FIND_BYTES(column, number)
#define XT_FIND_LIST(column, number)

#define XT_READ_U64(column, number)   .column = columns->column[row],
#define XT_READ_BYTES(column, number) .column = xt_chunk_bytes(columns->chunk, number, row),
#define XT_READ_LIST(column, number)  .column = xt_list_at(columns->chunk, number, row),

#define XT_WRITE_U64(column, number) xt_table_put(table, number, row->column);
#define XT_WRITE_BYTES(column, number)                                                             \
	xt_table_put_bytes(table, number, row->column.data, row->column.length);
#define XT_WRITE_LIST(column, number)                                                              \
	xt_table_put_list(table, number, row->column.elements, row->column.length);

#define XT_TYPE_UVAR	      U64
#define XT_TYPE_DELTA	      U64
#define XT_TYPE_SHUFFLE	      U64
#define XT_TYPE_DELTA_SHUFFLE U64
#define XT_TYPE_BYTES	      BYTES
#define XT_TYPE_LIST	      LIST

#define XT_JOIN_(a, b) a##b
#define XT_JOIN(a, b)  XT_JOIN_(a, b)

static inline struct xt_list xt_list_at(const struct xt_chunk *chunk, unsigned column, uint32_t row)
{
	uint32_t length;
	const uint64_t *elements = xt_chunk_list(chunk, column, row, &length);

	return (struct xt_list){elements, length};
}

static inline struct xt_bytes xt_bytes_of(const void *data, size_t length)
{
	return (struct xt_bytes){data, length};
}

static inline struct xt_bytes xt_text(const char *text)
{
	return xt_bytes_of(text, strlen(text));
}

static inline bool xt_bytes_are(struct xt_bytes bytes, const char *text)
{
	return bytes.length == strlen(text) && !memcmp(bytes.data, text, bytes.length);
}

#define XT_ROW(K, C, column, number, encoding)	  XT_JOIN(XT_ROW_, XT_TYPE_##encoding)(column)
#define XT_COLUMN(K, C, column, number, encoding) XT_JOIN(XT_COLUMN_, XT_TYPE_##encoding)(column)
#define XT_FIND(K, C, column, number, encoding)                                                    \
	XT_JOIN(XT_FIND_, XT_TYPE_##encoding)(column, number)
#define XT_READ(K, C, column, number, encoding)                                                    \
	XT_JOIN(XT_READ_, XT_TYPE_##encoding)(column, number)
#define XT_WRITE(K, C, column, number, encoding)                                                   \
	XT_JOIN(XT_WRITE_, XT_TYPE_##encoding)(column, number)

#define XT_ACCESSORS(K, kind, number)                                                              \
	struct xt_row_##kind {                                                                     \
		XT_##K##_COLUMNS(XT_ROW, K)                                                        \
	};                                                                                         \
	struct xt_columns_##kind {                                                                 \
		const struct xt_chunk *chunk;                                                      \
		XT_##K##_COLUMNS(XT_COLUMN, K)                                                     \
	};                                                                                         \
	static inline struct xt_columns_##kind xt_columns_##kind(const struct xt_chunk *chunk)     \
	{                                                                                          \
		return (struct xt_columns_##kind){.chunk = chunk, XT_##K##_COLUMNS(XT_FIND, K)};   \
	}                                                                                          \
	static inline struct xt_row_##kind xt_read_##kind(const struct xt_columns_##kind *columns, \
							  uint32_t row)                            \
	{                                                                                          \
		return (struct xt_row_##kind){XT_##K##_COLUMNS(XT_READ, K)};                       \
	}                                                                                          \
	static inline void xt_write_##kind(struct xt_table *table,                                 \
					   const struct xt_row_##kind *row)                        \
	{                                                                                          \
		XT_##K##_COLUMNS(XT_WRITE, K) xt_table_end_row(table);                             \
	}
XT_KINDS(XT_ACCESSORS)

/* Defines name(context, chunk), which calls function(context, &row) for each row of a chunk. */
#define XT_DEFINE_ROWS_VISITOR(name, kind, context_type, function)                                 \
	static void name(context_type *context, const struct xt_chunk *chunk)                      \
	{                                                                                          \
		const struct xt_columns_##kind columns = xt_columns_##kind(chunk);                 \
                                                                                                   \
		for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {                              \
			const struct xt_row_##kind row = xt_read_##kind(&columns, r);              \
                                                                                                   \
			function(context, &row);                                                   \
		}                                                                                  \
	}

/*
 * Defines name(context, chunk), which calls function(context, &row) for each row of a chunk of that
 * kind, up to the first error, and returns the error.
 */
#define XT_DEFINE_ROWS_READER(name, kind, context_type, function)                                  \
	static int name(context_type *context, const struct xt_chunk *chunk)                       \
	{                                                                                          \
		const struct xt_columns_##kind columns = xt_columns_##kind(chunk);                 \
		int error = 0;                                                                     \
                                                                                                   \
		for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++) {                    \
			const struct xt_row_##kind row = xt_read_##kind(&columns, r);              \
                                                                                                   \
			error = function(context, &row);                                           \
		}                                                                                  \
		return error;                                                                      \
	}

#endif
