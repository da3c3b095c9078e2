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
#include <stddef.h>
#include <stdint.h>

#include "log/base/grow.h"

#define CREATION_UNKNOWN 0

struct node {
	uint64_t id;
	uint64_t origin; /* id of the node it was cloned from; 0: not a clone */
	uint64_t time_ns;
	/* for nodes of child graphs: the node of the graph of which this is an instance */
	uint64_t instance_of;
	/* executable graph in which the node was changed; 0: the node was created */
	uint32_t graph_exec;
	uint32_t like_graph; /* if graph_exec is set: the graph that it was updated from */
	uint32_t stack;	     /* XT_STACK_ID of the call that created or changed it; 0 for clones */
	uint32_t thread;     /* XT_THREAD_ID */
	uint32_t type;	     /* CUgraphNodeType */
	uint32_t range;	     /* NVTX range of its creation */
	uint32_t creation;   /* set by nodes_index() */
	/* as in struct autograd_call */
	uint32_t autograd;
	uint64_t sequence, node_sequence;
	uint32_t name;	/* XT_STRING_ID of the kernel's; 0: unknown */
	uint32_t order; /* position in the log */
};

struct creation {
	uint32_t stack; /* XT_STACK_ID */
	uint32_t range; /* NVTX range around it */
	uint16_t api;	/* index into the model's apis; 0: not known yet */
};

/* The name of the kernel of a node. */
struct node_name {
	uint64_t id;
	uint64_t time_ns; /* after the creation of the node */
	uint32_t string;  /* XT_STRING_ID */
};

/* All zeros is an empty table. */
struct nodes {
	struct node *rows; /* sorted by id and time once indexed */
	size_t count;
	size_t capacity;
	uint32_t *by_thread; /* indices of rows that are not clones, by thread and time */
	size_t made_count;   /* length of by_thread */
	/* by index in by_thread: skips ahead towards the next node without a known call */
	uint32_t *next_unresolved;
	/* creation times of the first and the last node in by_thread */
	uint64_t made_from_ns, made_until_ns;
	LIST(struct creation) creations; /* creation 0 is none */
	struct node_cache_entry *recent;
	/* executable graphs with conditional nodes: upper halves of ids, sorted */
	LIST(uint32_t) conditional;
	LIST(struct node_name) names;
	uint64_t updated_max;	  /* limit for rows that updates of whole graphs add; 0: no limit */
	uint64_t unknown_from_ns; /* updates from this time on are unknown; 0: all are known */
	uint64_t cyclic_count;	  /* nodes whose chain of origins is cyclic or too long */
};

/* Append a row. */
void nodes_add(struct nodes *nodes, const struct node *node);
void nodes_add_name(struct nodes *nodes, const struct node_name *name);

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
