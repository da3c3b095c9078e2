/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PERFETTO_RANGES_H
#define XT_MERGE_PERFETTO_RANGES_H

#include "merge/export/perfetto/perfetto_state.h"

/* Writes a row of RANGE: the exporter's range(). Returns 0 or -ENOMEM. */
int perfetto_put_range(struct sink *sink, const struct process *process,
		       const struct xt_chunk *chunk, uint32_t row);

#endif
