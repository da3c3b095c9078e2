/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on the thread that owns the table: in the traced process, the writer thread. Only
 * xt_table_init() allocates.
 */
#include "log/base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "log/base/varint.h"

#define COLUMN(K, C, column, number, encoding) [number] = {#column, XT_ENC_##encoding},
#define KIND(K, kind, number)		       [number] = {#K, {XT_##K##_COLUMNS(COLUMN, K)}},
const struct xt_kind_spec xt_kind_specs[XT_KIND_COUNT] = {[XT_KIND_END] = {.name = "END"},
							  XT_KINDS(KIND)};

static uint8_t encoding_of(enum xt_kind kind, unsigned column)
{
	const struct xt_column_spec *spec = &xt_kind_specs[kind].columns[column];

	return spec->name ? spec->encoding : 0;
}

/* Upper bound of the encoded size of a table. */
static size_t bound(enum xt_kind kind, size_t rows, const size_t content[XT_TABLE_COLUMNS_MAX])
{
	size_t bytes = 0;

	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++) {
		uint8_t encoding = encoding_of(kind, c);

		if (!encoding)
			continue;
		bytes += sizeof(struct xt_column_header) + XT_BYTE_SHUFFLE_HEAD_BYTES +
			 rows * XT_VARINT_BYTES_MAX;
		if (encoding == XT_ENC_BYTES)
			bytes += content[c];
		else if (encoding == XT_ENC_LIST)
			bytes += content[c] * XT_VARINT_BYTES_MAX;
	}
	return bytes;
}

static int allocate_column(struct xt_table *table, unsigned column, size_t content_capacity)
{
	uint8_t encoding = encoding_of(table->kind, column);

	if (!encoding)
		return 0;
	table->values[column] = calloc(table->row_capacity, sizeof(uint64_t));
	if (!table->values[column])
		return -ENOMEM;
	if (encoding == XT_ENC_BYTES)
		table->bytes[column] = malloc(content_capacity);
	else if (encoding == XT_ENC_LIST)
		table->elements[column] = calloc(content_capacity, sizeof(uint64_t));
	else
		return 0;
	if (!table->bytes[column] && !table->elements[column])
		return -ENOMEM;
	table->capacity[column] = content_capacity;
	return 0;
}

int xt_table_init(struct xt_table *table, enum xt_kind kind, uint32_t row_capacity,
		  size_t content_capacity)
{
	size_t content[XT_TABLE_COLUMNS_MAX];

	memset(table, 0, sizeof(*table));
	if (kind <= 0 || kind >= XT_KIND_COUNT || !row_capacity ||
	    row_capacity > XT_CHUNK_ROWS_MAX || content_capacity > XT_CHUNK_RAW_BYTES_MAX)
		return -EINVAL;
	if (!content_capacity)
		content_capacity = 1; /* malloc(0) may be NULL */
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++)
		content[c] = content_capacity;
	if (bound(kind, row_capacity, content) > XT_CHUNK_RAW_BYTES_MAX)
		return -EINVAL;

	table->kind = kind;
	table->row_capacity = row_capacity;
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++) {
		if (allocate_column(table, c, content_capacity)) {
			xt_table_free(table);
			return -ENOMEM;
		}
	}
	return 0;
}

void xt_table_free(struct xt_table *table)
{
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++) {
		free_all(table->values[c], table->bytes[c], table->elements[c]);
	}
	memset(table, 0, sizeof(*table));
}

/* Bytes and lists of a row are empty until set. */
static void begin_row(struct xt_table *table)
{
	if (table->row_count == table->row_capacity)
		return;
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++)
		if (table->capacity[c])
			table->values[c][table->row_count] = 0;
}

void xt_table_clear(struct xt_table *table)
{
	table->row_count = 0;
	memset(table->used, 0, sizeof(table->used));
	begin_row(table);
}

void xt_table_end_row(struct xt_table *table)
{
	table->row_count++;
	begin_row(table);
}

/*
 * Reserves room for `length` items in the current row, replacing what the row had. Returns their
 * offset. Limits length to the available room: a caller's mistake must not become an overrun.
 */
static size_t reserve(struct xt_table *table, unsigned column, size_t *length)
{
	uint64_t *row_length = &table->values[column][table->row_count];
	size_t first = table->used[column] - *row_length;

	if (*length > table->capacity[column] - first)
		*length = table->capacity[column] - first;
	*row_length = *length;
	table->used[column] = first + *length;
	return first;
}

void xt_table_put_bytes(struct xt_table *table, unsigned column, const void *data, size_t length)
{
	size_t first = reserve(table, column, &length);

	if (length)
		memcpy(table->bytes[column] + first, data, length);
}

void xt_table_put_list(struct xt_table *table, unsigned column, const uint64_t *elements,
		       size_t length)
{
	size_t first = reserve(table, column, &length);

	if (length)
		memcpy(table->elements[column] + first, elements, length * sizeof(*elements));
}

size_t xt_table_encoded_bound(const struct xt_table *table)
{
	return bound(table->kind, table->row_count, table->used);
}

static bool all_equal(const uint64_t *values, uint32_t count)
{
	/* Compare the ends first: in a column that varies, they usually differ. */
	return values[0] == values[count - 1] &&
	       !memcmp(values, values + 1, (count - 1) * sizeof(*values));
}

/* The encoding of a scalar column in a log of that version. Byte shuffling came with version 2. */
static uint8_t scalar_encoding(uint8_t encoding, const uint64_t *values, uint32_t count,
			       unsigned version_major)
{
	if (all_equal(values, count))
		return XT_ENC_CONST;
	if (version_major < 2 && encoding == XT_ENC_SHUFFLE)
		return XT_ENC_UVAR;
	if (version_major < 2 && encoding == XT_ENC_DELTA_SHUFFLE)
		return XT_ENC_DELTA;
	return encoding;
}

static uint8_t *encode_scalars(uint8_t encoding, const uint64_t *values, uint32_t count,
			       uint8_t *out)
{
	switch (encoding) {
	case XT_ENC_CONST:
		return xt_uvar_put(out, values[0]);
	case XT_ENC_DELTA:
		return xt_delta_encode(out, values, count);
	case XT_ENC_SHUFFLE:
	case XT_ENC_DELTA_SHUFFLE:
		return xt_byte_shuffle_encode(out, values, count, encoding == XT_ENC_DELTA_SHUFFLE);
	default:
		return xt_uvar_encode(out, values, count);
	}
}

static uint8_t *encode_column(const struct xt_table *table, unsigned column, unsigned version_major,
			      uint8_t *out)
{
	struct xt_column_header header = {
		.column = (uint8_t)column,
		.encoding = encoding_of(table->kind, column),
	};
	const uint64_t *values = table->values[column];
	size_t used = table->used[column];
	uint8_t *data = out + sizeof(header);
	uint8_t *end = data;

	switch (header.encoding) {
	case XT_ENC_BYTES:
		end = xt_uvar_encode(end, values, table->row_count);
		if (used)
			memcpy(end, table->bytes[column], used);
		end += used;
		break;
	case XT_ENC_LIST:
		end = xt_uvar_encode(end, values, table->row_count);
		end = xt_delta_encode(end, table->elements[column], used);
		break;
	default:
		header.encoding =
			scalar_encoding(header.encoding, values, table->row_count, version_major);
		end = encode_scalars(header.encoding, values, table->row_count, end);
	}
	header.data_bytes = (uint32_t)(end - data);
	memcpy(out, &header, sizeof(header));
	return end;
}

#define CUT_BYTES_MIN 2048 /* starting a new block costs the compressor some bytes */

static void cut(struct xt_cuts *cuts, size_t end)
{
	if (end - (cuts->count ? cuts->ends[cuts->count - 1] : 0) >= CUT_BYTES_MIN)
		cuts->ends[cuts->count++] = (uint32_t)end;
}

/* Cuts a byte-shuffled column between its planes. */
static void cut_column(const struct xt_table *table, const uint8_t *out, size_t begin, size_t end,
		       struct xt_cuts *cuts)
{
	struct xt_column_header header;
	size_t planes = 1;

	memcpy(&header, out + begin, sizeof(header));
	if (header.encoding == XT_ENC_SHUFFLE || header.encoding == XT_ENC_DELTA_SHUFFLE)
		planes = header.data_bytes / table->row_count;
	while (--planes)
		cut(cuts, end - planes * table->row_count);
	cut(cuts, end);
}

size_t xt_table_encode(const struct xt_table *table, unsigned version_major, uint8_t *out,
		       struct xt_cuts *cuts)
{
	uint8_t *end = out;

	cuts->count = 0;
	if (!table->row_count)
		return 0;
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++) {
		size_t begin = (size_t)(end - out);

		if (!table->values[c])
			continue;
		end = encode_column(table, c, version_major, end);
		cut_column(table, out, begin, (size_t)(end - out), cuts);
	}
	return (size_t)(end - out);
}
