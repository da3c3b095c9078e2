/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables collect rows in memory until they are encoded as a chunk, column by column.
 *
 * A table belongs to one thread. xt_table_init() allocates everything. Adding rows never allocates,
 * so flush when xt_table_has_room() returns false.
 */
#ifndef XT_LOG_TABLE_H
#define XT_LOG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/log_format.h"

#define XT_TABLE_COLUMNS_MAX 13 /* column numbers are below this in every kind */

/* The schema (xtrace/log_schema.h) as a table. */
struct xt_column_spec {
	const char *name; /* NULL: no such column */
	uint8_t encoding; /* enum xt_encoding; a scalar column of equal values becomes CONST */
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
 * Allocates row_capacity rows, and content_capacity bytes (or list elements) for each bytes (or
 * list) column. Returns 0, -ENOMEM, or -EINVAL if a full table could exceed the limits of a chunk.
 * Each value may take 10 bytes of XT_CHUNK_RAW_BYTES_MAX, so CALL has room for 239,000 rows. After
 * a failure xt_table_free() is allowed but not needed.
 */
int xt_table_init(struct xt_table *table, enum xt_kind kind, uint32_t row_capacity,
		  size_t content_capacity);
void xt_table_free(struct xt_table *table);
void xt_table_clear(struct xt_table *table);

/* Whether one more row fits that adds at most `content` bytes (or elements) to each column. */
static inline bool xt_table_has_room(const struct xt_table *table, size_t content)
{
	if (table->row_count == table->row_capacity)
		return false;
	for (unsigned c = 0; content && c < XT_TABLE_COLUMNS_MAX; c++)
		if (table->capacity[c] && table->capacity[c] - table->used[c] < content)
			return false;
	return true;
}

/*
 * Set the columns of the row that xt_table_end_row() completes. Set every scalar column. Bytes and
 * list columns that are not set are empty. Check for room first.
 */
static inline void xt_table_put(struct xt_table *table, unsigned column, uint64_t value)
{
	table->values[column][table->row_count] = value;
}
void xt_table_put_bytes(struct xt_table *table, unsigned column, const void *data, size_t length);
void xt_table_put_list(struct xt_table *table, unsigned column, const uint64_t *elements,
		       size_t length);
void xt_table_end_row(struct xt_table *table);

/* Upper bound of the encoded size of the table in its present state. */
size_t xt_table_encoded_bound(const struct xt_table *table);

/*
 * Offsets where the character of the data changes. A compressor should start a new block there.
 * Zeros mean none.
 */
#define XT_CUTS_MAX (XT_TABLE_COLUMNS_MAX * 9)
struct xt_cuts {
	uint32_t count;
	uint32_t ends[XT_CUTS_MAX]; /* ascending; the last one is the end of the data */
};

/*
 * Encodes all columns into out, which has at least xt_table_encoded_bound() bytes. Returns the
 * size. version_major is that of the target log, which may be older than ours.
 */
size_t xt_table_encode(const struct xt_table *table, unsigned version_major, uint8_t *out,
		       struct xt_cuts *cuts);

#endif
