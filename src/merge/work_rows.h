/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_WORK_ROWS_H
#define XT_MERGE_WORK_ROWS_H

#include "merge/reading.h"

/* Reads a chunk of kernels, copies or memsets. */
void work_rows_read(struct reading *reading, const struct xt_chunk *chunk);

#endif
