/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes the rows of a chunk to the join. Called by events.c, on the thread of the reading.
 */
#ifndef XT_MERGE_CHUNK_ROWS_H
#define XT_MERGE_CHUNK_ROWS_H

#include <stdint.h>

#include "log/base/table.h"
#include "merge/read/model.h"
#include "xtrace/reader.h"

struct reading;
struct xt_chunk;

/* Returns the kinds of chunks that chunk_rows_read() accepts, as bits 1 << enum xt_kind. */
uint32_t chunk_row_kinds(void);

/* Returns the kinds among these whose chunks may be packed. */
uint32_t chunk_row_packed_kinds(void);

/* Reads all rows of the chunk. */
void chunk_rows_read(struct reading *reading, const struct xt_chunk *chunk);

#endif
