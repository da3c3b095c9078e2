/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of CUDA graphs: finds the call path that created the node that ran.
 *
 * Ids recur, so a node is identified by id and time. Instantiation and child graphs clone nodes. A
 * clone leads to the node it was cloned from, and in the end to a node that code created: its
 * creation. Changing a node counts as creating it again. All nodes created by one call stack in one
 * NVTX range share one creation.
 */
#ifndef XT_MERGE_NODES_H
#define XT_MERGE_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/read/node_table.h"

/* Call it once, after the last row and before the functions below. */
void nodes_index(struct nodes *nodes);
void nodes_free(struct nodes *nodes);

/* Returns the creation of the node with that id at that time, or CREATION_UNKNOWN. */
uint32_t nodes_creation(struct nodes *nodes, uint64_t id, uint64_t time_ns);

/*
 * Returns the creation time of the first node of a graph; 0: unknown. graph is the upper half of
 * its nodes' ids.
 */
uint64_t nodes_graph_since_ns(const struct nodes *nodes, uint32_t graph);

/* The work of one launch of an executable graph. */
struct graph_nodes {
	uint64_t kernel_count; /* including child graphs, but not bodies of conditional nodes */
	bool is_conditional;   /* the GPU decides how often its nodes run */
	bool has_nodes;	       /* the log shows its instantiation */
};

/*
 * graph_exec is the upper half of its nodes' ids. Returns zeros if the log has no node of that
 * graph.
 */
struct graph_nodes nodes_of_graph(const struct nodes *nodes, uint32_t graph_exec);

/*
 * Returns the id of the first kernel node from from_id on in the same executable graph, or 0 if
 * there is none. Child graphs and bodies are part of it. time_ns: when the graph was launched.
 */
uint64_t nodes_kernel_from(const struct nodes *nodes, uint64_t from_id, uint64_t time_ns);

/* Returns the XT_STRING_ID of the kernel's name of a node at that time; 0: unknown. */
uint32_t nodes_name(const struct nodes *nodes, uint64_t id, uint64_t time_ns);

/*
 * Assigns the nodes that a thread created between enter_ns and exit_ns to that call. Report nested
 * calls innermost first: the innermost call counts. Returns true if the call created any node.
 */
bool nodes_note_creating_call(struct nodes *nodes, uint32_t thread, uint64_t enter_ns,
			      uint64_t exit_ns, uint16_t api);

/* Returns false, in nearly all cases, if a call at that time created no node. */
static inline bool nodes_may_be_made(const struct nodes *nodes, uint64_t enter_ns, uint64_t exit_ns)
{
	return nodes->made_count && exit_ns >= nodes->made_from_ns &&
	       enter_ns <= nodes->made_until_ns;
}

/*
 * Like nodes_note_creating_call(), but fast for calls before the first or after the last creation,
 * which are nearly all.
 */
static inline bool nodes_note_call(struct nodes *nodes, uint32_t thread, uint64_t enter_ns,
				   uint64_t exit_ns, uint16_t api)
{
	return nodes_may_be_made(nodes, enter_ns, exit_ns) &&
	       nodes_note_creating_call(nodes, thread, enter_ns, exit_ns, api);
}

#endif
