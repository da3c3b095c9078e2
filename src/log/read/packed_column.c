/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain loops, so that the compiler vectorises them.
 */
#include "log/read/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int grow(struct xt_packed_column *column, size_t count)
{
	size_t rows = count + count / 4 + XT_BLOCK_ROWS;

	if (count <= column->row_capacity)
		return 0;
	xt_packed_column_free(column);
	column->blocks = malloc((rows / XT_BLOCK_ROWS + 1) * sizeof(*column->blocks));
	column->bytes = malloc(rows * sizeof(uint64_t));
	if (!column->blocks || !column->bytes) {
		xt_packed_column_free(column);
		return -ENOMEM;
	}
	column->row_capacity = rows;
	return 0;
}

/* Returns the bits in which any of the values differs from the first one. */
static uint64_t differing_bits(const uint64_t *values, size_t count)
{
	uint64_t first = values[0], bits = 0;

	for (size_t i = 0; i < count; i++)
		bits |= values[i] ^ first;
	return bits;
}

static uint8_t width_of(uint64_t bits)
{
	return !bits		    ? 0
	       : bits <= UINT8_MAX  ? 1
	       : bits <= UINT16_MAX ? 2
	       : bits <= UINT32_MAX ? 4
				    : 8;
}

#define DEFINE_WIDTH(type, name)                                                                   \
	static void pack_##name(const uint64_t *restrict values, size_t count, type *restrict out) \
	{                                                                                          \
		for (size_t i = 0; i < count; i++)                                                 \
			out[i] = (type)values[i];                                                  \
	}                                                                                          \
	static void unpack_##name(const type *restrict packed, uint64_t shared, size_t count,      \
				  uint64_t *restrict out)                                          \
	{                                                                                          \
		for (size_t i = 0; i < count; i++)                                                 \
			out[i] = shared | packed[i];                                               \
	}
DEFINE_WIDTH(uint8_t, 8)
DEFINE_WIDTH(uint16_t, 16)
DEFINE_WIDTH(uint32_t, 32)

int xt_packed_column_fill(struct xt_packed_column *column, const uint64_t *values, size_t count)
{
	struct xt_packed_block *block;
	uint32_t offset = 0;

	if (grow(column, count))
		return -ENOMEM;
	block = column->blocks;
	for (size_t from = 0; from < count; from += XT_BLOCK_ROWS, block++) {
		size_t length = count - from < XT_BLOCK_ROWS ? count - from : XT_BLOCK_ROWS;
		uint8_t width = width_of(differing_bits(values + from, length));
		uint8_t *bytes = column->bytes + offset;
		uint64_t low = width == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * width)) - 1;

		*block = (struct xt_packed_block){values[from] & ~low, offset, width};
		if (width == 8)
			memcpy(bytes, values + from, length * sizeof(*values));
		else if (width == 4)
			pack_32(values + from, length, (uint32_t *)(void *)bytes);
		else if (width == 2)
			pack_16(values + from, length, (uint16_t *)(void *)bytes);
		else if (width == 1)
			pack_8(values + from, length, bytes);
		offset += (uint32_t)length * width;
	}
	return 0;
}

int xt_packed_column_fill_one(struct xt_packed_column *column, uint64_t value, size_t count)
{
	if (grow(column, count))
		return -ENOMEM;
	for (size_t b = 0; b * XT_BLOCK_ROWS < count; b++)
		column->blocks[b] = (struct xt_packed_block){.shared = value};
	return 0;
}

void xt_packed_column_block(const struct xt_packed_column *column, size_t number, size_t count,
			    uint64_t *out)
{
	const struct xt_packed_block *block = &column->blocks[number];
	const uint8_t *bytes = column->bytes + block->offset;

	if (block->width == 8)
		memcpy(out, bytes, count * sizeof(*out));
	else if (block->width == 4)
		unpack_32((const uint32_t *)(const void *)bytes, block->shared, count, out);
	else if (block->width == 2)
		unpack_16((const uint16_t *)(const void *)bytes, block->shared, count, out);
	else if (block->width == 1)
		unpack_8(bytes, block->shared, count, out);
	else
		for (size_t i = 0; i < count; i++)
			out[i] = block->shared;
}

void xt_packed_column_free(struct xt_packed_column *column)
{
	free(column->blocks);
	free(column->bytes);
	*column = (struct xt_packed_column){0};
}
