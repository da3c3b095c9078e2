/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches whose kernels are missing.
 *
 * Every successful launch has a kernel, with two exceptions: a launch that was captured into a
 * graph, and the launch of a graph without kernels. A graph launch has one kernel for each kernel
 * node of its executable graph. The state belongs to one pass over one log.
 */
#ifndef XT_MERGE_MISSING_H
#define XT_MERGE_MISSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"
#include "merge/read/correlate.h"
#include "merge/read/model.h"

struct graph_launches;

/* Zeros are empty. */
struct missing {
	struct interner execs;	       /* index in graphs by graph_exec */
	struct graph_launches *graphs; /* entry 0 is unused */
	size_t graph_count, graph_capacity;
	uint32_t last; /* index in graphs of the last lookup */
	bool has_graph_launch;
	/* Launches of graphs whose instantiation is not in the log, as if it began later. */
	uint64_t unseen_launch_count;
};

/*
 * Adds a successful graph launch that was not captured. graph_exec: XT_CALL_GRAPH_EXEC. Sets
 * *has_no_kernel_out if the graph has no kernels, only copies or memsets.
 */
void missing_note_graph_launch(struct missing *missing, const struct model *model,
			       uint32_t graph_exec, bool *has_no_kernel_out);

/* Adds a kernel that ran as a node of a graph. It may come before its launch. */
void missing_note_graph_kernel(struct missing *missing, const struct model *model,
			       uint64_t graph_node_id);

/*
 * Number of missing kernels, once all events are read and joined. damage: of both passes. If the
 * log does not show which launches were captured, returns 0 and adds the launches without a kernel
 * that no account explains to *unclear_count.
 */
uint64_t missing_count(const struct missing *missing, const struct model *model,
		       const struct xt_damage *damage, const struct correlate_counts *counts,
		       uint64_t *unclear_count);

void missing_free(struct missing *missing);

#endif
