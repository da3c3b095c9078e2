/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of CUDA graphs: from the node that ran to the call path that made it.
 *
 * Ids recur, so a node is an id from a time on. A clone (by instantiation, by a child graph) leads
 * to the node it was made of, and in the end to one that code made: its creation. Code that has a
 * node do something else makes it anew. All nodes that were made by one call stack in one NVTX range
 * have one creation.
 */
#ifndef XT_MERGE_NODES_H
#define XT_MERGE_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/read/node_table.h"

/* All are there: to be called once, before what follows. 0 or -ENOMEM. */
int nodes_index(struct nodes *nodes);
void nodes_free(struct nodes *nodes);

/* The creation of the node that had that id at that time, or CREATION_UNKNOWN. */
uint32_t nodes_creation(struct nodes *nodes, uint64_t id, uint64_t time_ns);

/* When the first node was made of the graph with that number, the upper half of its nodes' ids; 0: not known. */
uint64_t nodes_graph_since_ns(const struct nodes *nodes, uint32_t graph);

/* What a launch of an executable graph runs. */
struct graph_nodes {
	uint64_t
		kernel_count; /* here and in the graphs inside; but of conditional ones only here */
	bool is_conditional;  /* how often its nodes run is decided on the GPU */
};

/* By the upper half of its nodes' ids. All zeros if the log has no node of that graph. */
struct graph_nodes nodes_of_graph(const struct nodes *nodes, uint32_t graph_exec);

/*
 * A thread was in that API from enter_ns to exit_ns: the nodes that it made by then were made by
 * that call. Of calls within each other the one that is told of first, the innermost, counts.
 * Returns whether the call made any.
 */
bool nodes_note_creating_call(struct nodes *nodes, uint32_t thread, uint64_t enter_ns,
			      uint64_t exit_ns, uint16_t api);

/* Nearly all calls are made before or after: those are told from the rest here. */
static inline bool nodes_note_call(struct nodes *nodes, uint32_t thread, uint64_t enter_ns,
				   uint64_t exit_ns, uint16_t api)
{
	return nodes->made_count && exit_ns >= nodes->made_from_ns &&
	       enter_ns <= nodes->made_until_ns &&
	       nodes_note_creating_call(nodes, thread, enter_ns, exit_ns, api);
}

#endif
