/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers of the readers of calls, work and memory. Each reads a chunk in blocks of rows, which
 * stay in the nearest cache.
 */
#ifndef XT_MERGE_ROW_BLOCKS_H
#define XT_MERGE_ROW_BLOCKS_H

#include "log/base/table.h"
#include "merge/read/model.h"
#include "xtrace/reader.h"

static inline uint32_t narrow_id(uint64_t id)
{
	return id > UINT32_MAX ? 0 : (uint32_t)id;
}

/* Returns false if the start is 0 or the end is before the start. */
static inline bool has_valid_times(uint64_t start_ns, uint64_t duration_ns)
{
	return start_ns && (start_ns | duration_ns | (start_ns + duration_ns)) <= INT64_MAX;
}

/* Makes a correlation id unique in the log. Keeps 0, which means an unknown call. */
static inline uint64_t unique_correlation(const struct model *model, uint64_t correlation,
					  uint64_t time_ns)
{
	return correlation ? correlation + model_numbering(model, time_ns) : 0;
}

/* Room for a block of rows of each column. */
struct block_buffers {
	uint64_t values[XT_TABLE_COLUMNS_MAX][XT_BLOCK_ROWS];
};

static inline const uint64_t *block_of(const struct xt_chunk *chunk, unsigned column, uint32_t row,
				       struct block_buffers *buffers)
{
	return xt_chunk_block(chunk, column, row, buffers->values[column]);
}

/* Returns NULL for a column of zeros, so that unused columns cost nothing. */
static inline const uint64_t *block_or_null(const struct xt_chunk *chunk, unsigned column,
					    uint32_t row, struct block_buffers *buffers)
{
	return xt_chunk_is_zero(chunk, column) ? NULL : block_of(chunk, column, row, buffers);
}

static inline uint32_t block_rows(const struct xt_chunk *chunk, uint32_t row)
{
	uint32_t left = xt_chunk_rows(chunk) - row;

	return left < XT_BLOCK_ROWS ? left : XT_BLOCK_ROWS;
}

#endif
