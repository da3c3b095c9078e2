/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decompresses chunks ahead of use, on a thread of its own if there is a processor for it.
 * Otherwise chunks are decompressed when needed.
 */
#ifndef XT_MERGE_PREFETCH_H
#define XT_MERGE_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "xtrace/reader.h"

struct prefetch;

/*
 * Starts reading chunks of those kinds, on a thread of its own if has_helper. Do not use the reader
 * until prefetch_close(). NULL if memory ran out.
 */
struct prefetch *prefetch_open(struct xt_reader *reader, uint32_t wanted_kinds, bool has_helper);

/* The next chunk, valid until the next call; NULL at the end of the log. */
const struct xt_chunk *prefetch_next(struct prefetch *prefetch);

/* Bytes of the log up to the end of that chunk. */
uint64_t prefetch_position(const struct prefetch *prefetch);

/* Chunks before it that could not be decompressed. */
uint64_t prefetch_damaged(const struct prefetch *prefetch);

/* Stops reading, at the end or earlier. Accepts NULL. */
void prefetch_close(struct prefetch *prefetch);

#endif
