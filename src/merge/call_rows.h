/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_CALL_ROWS_H
#define XT_MERGE_CALL_ROWS_H

struct reading;
struct xt_chunk;

/* Reads a chunk of calls. */
void call_rows_read(struct reading *reading, const struct xt_chunk *chunk);

#endif
