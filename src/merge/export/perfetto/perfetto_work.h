/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_PERFETTO_WORK_H
#define XT_MERGE_PERFETTO_WORK_H

#include "merge/export/perfetto/perfetto_state.h"

/*
 * Writes GPU work with the stack of its launch (NULL: unknown), weighted by its duration. flow is
 * the flow that leads to it, or 0. Returns 0 or -ENOMEM.
 */
int perfetto_put_work(struct sink *sink, const struct process *process, const struct work *work,
		      const struct launch *launch, uint64_t flow);

#endif
