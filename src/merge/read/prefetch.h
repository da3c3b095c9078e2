/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes chunks before they are needed, on helper threads if there are processors for them.
 * Otherwise chunks are decoded on demand. The result is the same.
 */
#ifndef XT_MERGE_PREFETCH_H
#define XT_MERGE_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#include "xtrace/reader.h"

struct prefetch;

#define PREFETCH_HELPERS_MAX 3 /* more would wait for the thread that uses the chunks */

/*
 * Starts reading chunks of these kinds, as bits 1 << enum xt_kind. Chunks of packed_kinds may be
 * packed: read them with xt_chunk_block(). helper_count: so many other threads decode chunks, too.
 * Do not use the reader until prefetch_close().
 */
struct prefetch *prefetch_open(struct xt_reader *reader, uint32_t wanted_kinds,
			       uint32_t packed_kinds, size_t helper_count);

/* Returns the next chunk, valid until the next call, or NULL at the end of the log. */
const struct xt_chunk *prefetch_next(struct prefetch *prefetch);

/* Returns the offset in the log of the end of that chunk. */
uint64_t prefetch_position(const struct prefetch *prefetch);

/* Returns the number of damaged chunks before it. */
uint64_t prefetch_damaged(const struct prefetch *prefetch);

/* Stops reading, at the end or earlier. Accepts NULL. */
void prefetch_close(struct prefetch *prefetch);

#endif
