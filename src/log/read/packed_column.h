/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A column in as few bytes as its values differ in. Chunks that another thread reads are kept so:
 * moving columns between the caches of processors takes longer than packing them.
 *
 * Blocks of rows are packed one by one. Each has the bits that its values share, and the low bytes
 * of each value.
 */
#ifndef XT_LOG_PACKED_COLUMN_H
#define XT_LOG_PACKED_COLUMN_H

#include <stddef.h>
#include <stdint.h>

#include "xtrace/reader.h"

struct xt_packed_block {
	uint64_t shared; /* bits that all values have; their low bytes are 0 */
	uint32_t offset; /* in bytes */
	uint8_t width;	 /* low bytes of a value: 0, 1, 2, 4 or 8 */
};

struct xt_packed_column {
	struct xt_packed_block *blocks;
	uint8_t *bytes;
	size_t row_capacity;
};

/* Returns 0 or -ENOMEM. Replaces what the column had. */
int xt_packed_column_fill(struct xt_packed_column *column, const uint64_t *values, size_t count);

/* The same for a column whose values are all equal. */
int xt_packed_column_fill_one(struct xt_packed_column *column, uint64_t value, size_t count);

/* Unpacks the first `count` values of a block; at most XT_BLOCK_ROWS. */
void xt_packed_column_block(const struct xt_packed_column *column, size_t block, size_t count,
			    uint64_t *out);

void xt_packed_column_free(struct xt_packed_column *column);

#endif
