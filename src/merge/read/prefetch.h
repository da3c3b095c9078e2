/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a log ahead: chunks are unpacked by a thread of their own while those before them are
 * used, where there is a processor for it. Without one they are unpacked when they are asked for.
 */
#ifndef XT_MERGE_PREFETCH_H
#define XT_MERGE_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "xtrace/reader.h"

struct prefetch;

/* Begins to read the chunks of those kinds, by a thread of their own if there is a helper. The reader is not to be used until prefetch_close(). NULL
 * if memory ran out. */
struct prefetch *prefetch_open(struct xt_reader *reader, uint32_t wanted_kinds, bool has_helper);

/* The next chunk, valid until the next call; NULL at the end of the log. */
const struct xt_chunk *prefetch_next(struct prefetch *prefetch);

/* How many bytes of the log lie before the end of that chunk. */
uint64_t prefetch_position(const struct prefetch *prefetch);

/* How many chunks before it could not be unpacked. */
uint64_t prefetch_damaged(const struct prefetch *prefetch);

/* Stops reading, at the end or before. Accepts NULL. */
void prefetch_close(struct prefetch *prefetch);

#endif
