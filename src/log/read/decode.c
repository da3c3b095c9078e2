/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the content of a chunk into columns, and implements the accessors of xtrace/reader.h. The
 * input is untrusted: every size is checked against the available data before use. Runs on the
 * thread that uses the chunk.
 */
#include "log/read/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "log/base/varint.h"

#define FRAME_DESCRIPTOR_OFFSET	  4 /* RFC 8878: follows the magic number */
#define FRAME_DESCRIPTOR_CHECKSUM (1u << 2)

/*
 * Returns the array with room for `count` items, or NULL. The old content is lost. Allocates some
 * more than asked, so that chunks of slightly different sizes do not each reallocate.
 */
static void *grow(void *array, size_t *capacity, size_t count, size_t item_bytes)
{
	if (array && count <= *capacity)
		return array;
	free(array);
	*capacity = count + count / 4 + 1;
	array = malloc(*capacity * item_bytes);
	if (!array)
		*capacity = 0;
	return array;
}

static int grow_zeros(struct xt_chunk *chunk, size_t count)
{
	if (count <= chunk->zeros_count)
		return 0;
	free(chunk->zeros);
	chunk->zeros = calloc(count, sizeof(*chunk->zeros));
	chunk->zeros_count = chunk->zeros ? count : 0;
	return chunk->zeros ? 0 : -ENOMEM;
}

static int unpack_frame(struct xt_chunk *chunk, const uint8_t *stored)
{
	const struct xt_chunk_header *header = &chunk->header;
	size_t stored_bytes = header->stored_bytes;
	const uint32_t magic = ZSTD_MAGICNUMBER;
	struct xt_scratch *scratch = chunk->scratch;
	ZSTD_DCtx **dctx = scratch ? &scratch->dctx : &chunk->dctx;
	uint8_t **raw = scratch ? &scratch->raw : &chunk->raw;
	size_t *raw_capacity = scratch ? &scratch->raw_capacity : &chunk->raw_capacity;
	size_t raw_bytes;

	/* Accept exactly one frame that is not skippable and has a content size and a checksum. */
	if (stored_bytes <= FRAME_DESCRIPTOR_OFFSET || memcmp(stored, &magic, sizeof(magic)) != 0 ||
	    ZSTD_findFrameCompressedSize(stored, stored_bytes) != stored_bytes ||
	    ZSTD_getFrameContentSize(stored, stored_bytes) != header->raw_bytes ||
	    !(stored[FRAME_DESCRIPTOR_OFFSET] & FRAME_DESCRIPTOR_CHECKSUM))
		return -EBADMSG;

	if (!*dctx)
		*dctx = ZSTD_createDCtx();
	if (!*dctx)
		return -ENOMEM;
	*raw = grow(*raw, raw_capacity, header->raw_bytes, 1);
	if (!*raw)
		return -ENOMEM;
	raw_bytes = ZSTD_decompressDCtx(*dctx, *raw, header->raw_bytes, stored, stored_bytes);
	if (ZSTD_isError(raw_bytes) || raw_bytes != header->raw_bytes)
		return -EBADMSG;
	return 0;
}

/* Columns of zeros share one array, so that rarely used columns take neither time nor cache. */
static int decode_const(struct xt_chunk_column *column, const uint8_t *data, const uint8_t *end,
			uint32_t row_count, bool is_packed)
{
	uint64_t value;

	if (xt_uvar_get(data, end, &value) != end)
		return -EBADMSG;
	column->is_zero = value == 0;
	if (column->is_zero)
		return 0;
	if (is_packed)
		return xt_packed_column_fill_one(&column->packed, value, row_count);
	if (row_count > column->values_capacity)
		column->filled_count = 0;
	column->values =
		grow(column->values, &column->values_capacity, row_count, sizeof(uint64_t));
	if (!column->values)
		return -ENOMEM;
	if (column->filled_count && column->filled_value == value &&
	    column->filled_count >= row_count)
		return 0;
	for (uint32_t row = 0; row < row_count; row++)
		column->values[row] = value;
	column->filled_value = value;
	column->filled_count = row_count;
	return 0;
}

static int decode_values(uint8_t encoding, const uint8_t *data, const uint8_t *end,
			 uint64_t *values, uint32_t row_count)
{
	if (encoding == XT_ENC_SHUFFLE || encoding == XT_ENC_DELTA_SHUFFLE)
		return xt_byte_shuffle_decode(data, end, values, row_count,
					      encoding == XT_ENC_DELTA_SHUFFLE)
			       ? 0
			       : -EBADMSG;
	if (encoding == XT_ENC_DELTA)
		data = xt_delta_decode(data, end, values, row_count);
	else
		data = xt_uvar_decode(data, end, values, row_count);
	return data == end ? 0 : -EBADMSG;
}

/* scratch: pack the column; else NULL. */
static int decode_scalars(struct xt_chunk_column *column, struct xt_scratch *scratch,
			  uint8_t encoding, const uint8_t *data, const uint8_t *end,
			  uint32_t row_count)
{
	uint64_t **values = scratch ? &scratch->values : &column->values;
	size_t *capacity = scratch ? &scratch->values_capacity : &column->values_capacity;
	int error;

	/*
	 * A row takes at least one byte. Reject the chunk before a small file makes us allocate for
	 * many rows.
	 */
	if (encoding != XT_ENC_CONST && (size_t)(end - data) < row_count)
		return -EBADMSG;
	column->is_zero = false;
	if (encoding == XT_ENC_CONST)
		return decode_const(column, data, end, row_count, scratch != NULL);
	*values = grow(*values, capacity, row_count, sizeof(uint64_t));
	if (!*values)
		return -ENOMEM;
	column->filled_count = 0;
	error = decode_values(encoding, data, end, *values, row_count);
	if (!error && scratch)
		error = xt_packed_column_fill(&column->packed, *values, row_count);
	return error;
}

/*
 * Decodes the lengths that precede texts and lists. Returns the start of the content, or NULL if
 * damaged. Each element takes at least one byte, so the sum of lengths cannot exceed the remaining
 * data.
 */
static const uint8_t *decode_lengths(struct xt_chunk_column *column, const uint8_t *data,
				     const uint8_t *end, uint32_t row_count)
{
	uint64_t sum = 0;

	for (uint32_t row = 0; row < row_count; row++) {
		uint64_t length;

		column->offsets[row] = (uint32_t)sum;
		data = xt_uvar_get(data, end, &length);
		if (!data || length > XT_CHUNK_RAW_BYTES_MAX)
			return NULL;
		sum += length;
		if (sum > (uint64_t)(end - data))
			return NULL;
	}
	column->offsets[row_count] = (uint32_t)sum;
	return data;
}

static int decode_varying(struct xt_chunk_column *column, uint8_t encoding, const uint8_t *data,
			  const uint8_t *end, uint32_t row_count)
{
	uint32_t total;

	if ((size_t)(end - data) < row_count)
		return -EBADMSG;
	column->offsets = grow(column->offsets, &column->offsets_capacity, (size_t)row_count + 1,
			       sizeof(uint32_t));
	if (!column->offsets)
		return -ENOMEM;
	data = decode_lengths(column, data, end, row_count);
	if (!data)
		return -EBADMSG;
	total = column->offsets[row_count];
	if (encoding == XT_ENC_BYTES) {
		column->content = data;
		return (size_t)(end - data) == total ? 0 : -EBADMSG;
	}
	column->filled_count = 0;
	column->values = grow(column->values, &column->values_capacity, total, sizeof(uint64_t));
	if (!column->values)
		return -ENOMEM;
	return xt_delta_decode(data, end, column->values, total) == end ? 0 : -EBADMSG;
}

static int decode_column(struct xt_chunk *chunk, const struct xt_column_header *header,
			 const uint8_t *data)
{
	const struct xt_column_spec *spec;
	struct xt_chunk_column *column;
	const uint8_t *end = data + header->data_bytes;
	bool scalar = header->encoding != XT_ENC_BYTES && header->encoding != XT_ENC_LIST &&
		      header->encoding >= XT_ENC_UVAR && header->encoding <= XT_ENC_DELTA_SHUFFLE;
	int error;

	if (header->column >= XT_TABLE_COLUMNS_MAX)
		return 0;
	spec = &xt_kind_specs[chunk->header.kind].columns[header->column];
	column = &chunk->columns[header->column];
	if (!spec->name)
		return 0;
	if (column->present)
		return -EBADMSG;
	if (spec->encoding == XT_ENC_BYTES || spec->encoding == XT_ENC_LIST) {
		if (header->encoding != spec->encoding)
			return -EBADMSG;
		error = decode_varying(column, header->encoding, data, end,
				       chunk->header.row_count);
	} else {
		if (!scalar)
			return -EBADMSG;
		error = decode_scalars(column, chunk->scratch, header->encoding, data, end,
				       chunk->header.row_count);
	}
	column->present = !error;
	return error;
}

static int unpack(struct xt_chunk *chunk, const uint8_t *stored)
{
	const struct xt_chunk_header *header = &chunk->header;
	uint32_t zero_count = header->row_count > XT_BLOCK_ROWS ? header->row_count : XT_BLOCK_ROWS;
	const uint8_t *p, *end;
	int error;

	if (header->raw_bytes > XT_CHUNK_RAW_BYTES_MAX || header->row_count > XT_CHUNK_ROWS_MAX)
		return -EBADMSG;
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++)
		chunk->columns[c].present = false;
	chunk->is_packed = chunk->scratch != NULL;

	error = unpack_frame(chunk, stored);
	if (!error)
		error = grow_zeros(chunk, chunk->is_packed ? XT_BLOCK_ROWS : zero_count);
	p = chunk->is_packed ? chunk->scratch->raw : chunk->raw;
	end = error ? p : p + header->raw_bytes;
	while (!error && p < end) {
		struct xt_column_header column;

		if ((size_t)(end - p) < sizeof(column))
			return -EBADMSG;
		memcpy(&column, p, sizeof(column));
		p += sizeof(column);
		if (column.data_bytes > (size_t)(end - p))
			return -EBADMSG;
		error = decode_column(chunk, &column, p);
		p += column.data_bytes;
	}
	return error;
}

int xt_chunk_unpack(struct xt_chunk *chunk, const uint8_t *stored)
{
	int error = unpack(chunk, stored);

	chunk->lacks_memory = error == -ENOMEM;
	return error;
}

int xt_chunk_store(struct xt_chunk *chunk, const uint8_t *stored)
{
	size_t stored_bytes = chunk->header.stored_bytes;

	chunk->stored = grow(chunk->stored, &chunk->stored_capacity, stored_bytes, 1);
	if (!chunk->stored)
		return -ENOMEM;
	memcpy(chunk->stored, stored, stored_bytes);
	return 0;
}

bool xt_chunk_decode(struct xt_chunk *chunk)
{
	return !xt_chunk_unpack(chunk, chunk->stored);
}

struct xt_scratch *xt_scratch_new(void)
{
	return calloc(1, sizeof(struct xt_scratch));
}

void xt_scratch_free(struct xt_scratch *scratch)
{
	if (!scratch)
		return;
	ZSTD_freeDCtx(scratch->dctx);
	free(scratch->raw);
	free(scratch->values);
	free(scratch);
}

/* Texts and lists are not packed. They point into the content of the frame. */
static bool has_only_scalars(enum xt_kind kind)
{
	const struct xt_column_spec *columns = xt_kind_specs[kind].columns;
	bool is_scalar = true;

	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++)
		is_scalar &=
			columns[c].encoding != XT_ENC_BYTES && columns[c].encoding != XT_ENC_LIST;
	return is_scalar;
}

bool xt_chunk_decode_packed(struct xt_chunk *chunk, struct xt_scratch *scratch)
{
	bool is_intact;

	chunk->scratch = has_only_scalars(xt_chunk_kind(chunk)) ? scratch : NULL;
	is_intact = xt_chunk_decode(chunk);
	chunk->scratch = NULL;
	return is_intact;
}

void xt_chunk_release(struct xt_chunk *chunk)
{
	ZSTD_freeDCtx(chunk->dctx);
	free(chunk->stored);
	free(chunk->raw);
	free(chunk->zeros);
	for (unsigned c = 0; c < XT_TABLE_COLUMNS_MAX; c++) {
		free(chunk->columns[c].values);
		free(chunk->columns[c].offsets);
		xt_packed_column_free(&chunk->columns[c].packed);
	}
	memset(chunk, 0, sizeof(*chunk));
}

struct xt_chunk *xt_chunk_new(void)
{
	return calloc(1, sizeof(struct xt_chunk));
}

void xt_chunk_free(struct xt_chunk *chunk)
{
	if (chunk)
		xt_chunk_release(chunk);
	free(chunk);
}

enum xt_kind xt_chunk_kind(const struct xt_chunk *chunk)
{
	return (enum xt_kind)chunk->header.kind;
}

uint32_t xt_chunk_rows(const struct xt_chunk *chunk)
{
	return chunk->header.row_count;
}

/* Returns the column if the chunk has it in this class of encodings, else NULL. */
static const struct xt_chunk_column *find_column(const struct xt_chunk *chunk, unsigned column,
						 bool varying, uint8_t encoding)
{
	uint8_t declared;

	if (column >= XT_TABLE_COLUMNS_MAX || !chunk->columns[column].present)
		return NULL;
	declared = xt_kind_specs[chunk->header.kind].columns[column].encoding;
	if (varying ? declared != encoding : declared == XT_ENC_BYTES || declared == XT_ENC_LIST)
		return NULL;
	return &chunk->columns[column];
}

const uint64_t *xt_chunk_u64(const struct xt_chunk *chunk, unsigned column)
{
	const struct xt_chunk_column *found = find_column(chunk, column, false, 0);

	return found && !found->is_zero ? found->values : chunk->zeros;
}

const uint64_t *xt_chunk_block(const struct xt_chunk *chunk, unsigned column, uint32_t row,
			       uint64_t buffer[XT_BLOCK_ROWS])
{
	const struct xt_chunk_column *found = find_column(chunk, column, false, 0);
	uint32_t count = chunk->header.row_count - row;

	if (!found || found->is_zero)
		return chunk->zeros;
	if (!chunk->is_packed)
		return found->values + row;
	xt_packed_column_block(&found->packed, row / XT_BLOCK_ROWS,
			       count < XT_BLOCK_ROWS ? count : XT_BLOCK_ROWS, buffer);
	return buffer;
}

bool xt_chunk_is_zero(const struct xt_chunk *chunk, unsigned column)
{
	const struct xt_chunk_column *found = find_column(chunk, column, false, 0);

	return !found || found->is_zero;
}

struct xt_bytes xt_chunk_bytes(const struct xt_chunk *chunk, unsigned column, uint32_t row)
{
	const struct xt_chunk_column *found = find_column(chunk, column, true, XT_ENC_BYTES);

	if (!found || row >= chunk->header.row_count)
		return (struct xt_bytes){NULL, 0};
	return (struct xt_bytes){(const char *)found->content + found->offsets[row],
				 found->offsets[row + 1] - found->offsets[row]};
}

const uint64_t *xt_chunk_list(const struct xt_chunk *chunk, unsigned column, uint32_t row,
			      uint32_t *length_out)
{
	const struct xt_chunk_column *found = find_column(chunk, column, true, XT_ENC_LIST);

	*length_out = 0;
	if (!found || row >= chunk->header.row_count)
		return chunk->zeros;
	*length_out = found->offsets[row + 1] - found->offsets[row];
	return found->values + found->offsets[row];
}
