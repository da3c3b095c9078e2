/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes chunks before they are needed, on a helper thread if there is a processor for it.
 * Otherwise chunks are decoded on demand. The result is the same.
 */
#ifndef XT_MERGE_PREFETCH_H
#define XT_MERGE_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "xtrace/reader.h"

struct prefetch;

/*
 * Starts reading chunks of these kinds. has_helper: a helper thread decodes them, too. Do not use
 * the reader until prefetch_close(). Returns NULL if out of memory.
 */
struct prefetch *prefetch_open(struct xt_reader *reader, uint32_t wanted_kinds, bool has_helper);

/* Returns the next chunk, valid until the next call, or NULL at the end of the log. */
const struct xt_chunk *prefetch_next(struct prefetch *prefetch);

/* Returns the offset in the log of the end of that chunk. */
uint64_t prefetch_position(const struct prefetch *prefetch);

/* Returns the number of damaged chunks before it. */
uint64_t prefetch_damaged(const struct prefetch *prefetch);

/* Stops reading, at the end or earlier. Accepts NULL. */
void prefetch_close(struct prefetch *prefetch);

#endif
