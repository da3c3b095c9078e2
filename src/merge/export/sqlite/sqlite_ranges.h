/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SQLITE_RANGES_H
#define XT_MERGE_SQLITE_RANGES_H

#include "merge/export/sqlite/sqlite_state.h"

/* NVTX ranges. Return 0 or -ENOMEM. */
int sqlite_put_range(struct sink *sink, const struct process *process, const struct xt_chunk *chunk,
		     uint32_t row);
int sqlite_put_open_ranges(struct sink *sink, const struct process *process);

#endif
