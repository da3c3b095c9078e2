/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of CUDA graphs that were recorded as a whole. The log has their names and the call
 * paths that created them, but no times: each counts once for each launch of its graph.
 */
#ifndef XT_MERGE_WHOLE_GRAPHS_H
#define XT_MERGE_WHOLE_GRAPHS_H

#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"
#include "merge/read/correlate.h"
#include "merge/sums/aggregate.h"

/* Kernels counted for one log. Later ones are left out. */
#define WHOLE_GRAPHS_KERNELS_MAX (1u << 20)

struct reading;

/* Zeros are empty. */
struct whole_graphs {
	struct interner keys; /* an owner and an executable graph */
	struct whole_launches {
		uint64_t first_ns;
		uint64_t count;
	} * list; /* by id of the key - 1 */
	size_t capacity;
};

/* Counts a launch. owner: of the graph as a whole. */
void whole_graphs_add(struct whole_graphs *graphs, const struct work *work,
		      const struct owner *owner, uint64_t launched_ns);

/* Adds the kernels to the sums of the log, after the last event. */
void whole_graphs_finish(struct reading *reading);

void whole_graphs_free(struct whole_graphs *graphs);

#endif
