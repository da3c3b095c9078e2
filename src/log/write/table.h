/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables in memory, on their way to becoming chunks: rows are put in, columns come out.
 *
 * A table belongs to one thread. All its memory exists after xt_table_init(); putting rows in
 * never allocates, so a caller flushes when xt_table_has_room() says no.
 */
#ifndef XT_LOG_TABLE_H
#define XT_LOG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/log_format.h"

#define XT_TABLE_COLUMNS_MAX 13 /* column numbers are below this in every kind */

/* The schema: what columns a kind has and how each is encoded. One table for writer and reader. */
struct xt_column_spec {
	const char *name; /* as docs/LOG_FORMAT.md calls it; NULL: no such column */
	uint8_t encoding; /* enum xt_encoding; scalars that are equal throughout become CONST */
};
struct xt_kind_spec {
	const char *name;				     /* NULL: unknown kind */
	struct xt_column_spec columns[XT_TABLE_COLUMNS_MAX]; /* by column number */
};
extern const struct xt_kind_spec xt_kind_specs[XT_KIND_COUNT];

struct xt_table {
	enum xt_kind kind;
	uint32_t row_count;
	uint32_t row_capacity;
	uint64_t *values[XT_TABLE_COLUMNS_MAX];	  /* scalars; lengths for bytes and lists */
	uint8_t *bytes[XT_TABLE_COLUMNS_MAX];	  /* content of a bytes column */
	uint64_t *elements[XT_TABLE_COLUMNS_MAX]; /* content of a list column */
	size_t used[XT_TABLE_COLUMNS_MAX];	  /* bytes or elements in use */
	size_t capacity[XT_TABLE_COLUMNS_MAX];	  /* of bytes[] or elements[] */
};

/*
 * row_capacity rows; content_capacity bytes (or list elements) for each bytes (or list) column
 * together. 0, -ENOMEM, or -EINVAL if a full table could exceed the limits of a chunk (each value
 * may take 10 bytes of XT_CHUNK_RAW_BYTES_MAX: CALL has room for 239,000 rows). After a failure
 * xt_table_free() is safe but not needed.
 */
int xt_table_init(struct xt_table *table, enum xt_kind kind, uint32_t row_capacity,
		  size_t content_capacity);
void xt_table_free(struct xt_table *table);
void xt_table_clear(struct xt_table *table);

/* Room for one more row that brings at most content bytes (or elements) to each column? */
static inline bool xt_table_has_room(const struct xt_table *table, size_t content)
{
	if (table->row_count == table->row_capacity)
		return false;
	for (unsigned c = 0; content && c < XT_TABLE_COLUMNS_MAX; c++)
		if (table->capacity[c] && table->capacity[c] - table->used[c] < content)
			return false;
	return true;
}

/* Fill the row that xt_table_end_row() completes. Every scalar column must be put; bytes and
 * list columns that are not put are empty. Room must have been checked. */
static inline void xt_table_put(struct xt_table *table, unsigned column, uint64_t value)
{
	table->values[column][table->row_count] = value;
}
void xt_table_put_bytes(struct xt_table *table, unsigned column, const void *data, size_t length);
void xt_table_put_list(struct xt_table *table, unsigned column, const uint64_t *elements,
		       size_t length);
void xt_table_end_row(struct xt_table *table);

/* Upper bound of the encoded size of the table as it stands. */
size_t xt_table_encoded_bound(const struct xt_table *table);

/*
 * Where one sort of content ends and another begins: whoever compresses does well to begin anew.
 * All zeros is none.
 */
#define XT_CUTS_MAX (XT_TABLE_COLUMNS_MAX * 9)
struct xt_cuts {
	uint32_t count;
	uint32_t ends[XT_CUTS_MAX]; /* in ascending order, the last one is that of all */
};

/*
 * Encodes all columns into out (of at least xt_table_encoded_bound() bytes); returns the size.
 * version_major: of the log that it is for, which may be older than ours.
 */
size_t xt_table_encode(const struct xt_table *table, unsigned version_major, uint8_t *out,
		       struct xt_cuts *cuts);

#endif
