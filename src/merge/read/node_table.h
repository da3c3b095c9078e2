/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph nodes of a log, and what nodes.c derives from them.
 */
#ifndef XT_MERGE_NODE_TABLE_H
#define XT_MERGE_NODE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define CREATION_UNKNOWN 0

struct node {
	uint64_t id;
	uint64_t origin; /* id of the node it was cloned from; 0: not a clone */
	uint64_t time_ns;
	uint64_t
		instance_of; /* used by child_nodes.c: the graph's node of which this is an instance */
	uint32_t
		graph_exec; /* executable graph in which the node (id: the graph's) was changed; 0: the node was created */
	uint32_t like_graph; /* with graph_exec: the graph that it was updated from */
	uint32_t stack;	     /* XT_STACK_ID of the call that created or changed it; 0 for clones */
	uint32_t thread;     /* XT_THREAD_ID */
	uint32_t type;	     /* CUgraphNodeType */
	uint32_t range;	     /* NVTX range of its creation */
	uint32_t creation;   /* used by nodes.c */
	uint32_t order;	     /* used by nodes.c: position in the log */
};

struct creation {
	uint32_t stack; /* XT_STACK_ID */
	uint32_t range; /* NVTX range around it */
	uint16_t api;	/* index into the model's apis; 0: unknown (so far) */
};

/* All zeros is an empty table. */
struct nodes {
	struct node *rows; /* sorted by id and time once indexed */
	size_t count;
	size_t capacity;
	uint32_t *by_thread; /* indices of rows that are not clones, by thread and time */
	size_t made_count;
	uint32_t *
		next_unresolved; /* by index in by_thread: a step towards the next node without a known call */
	uint64_t made_from_ns, made_until_ns; /* creation times of the first and the last of them */
	struct creation *creations;	      /* creation 0 is none */
	size_t creation_count;
	struct node_cache_entry *recent;
	uint32_t *
		conditional; /* executable graphs with conditional nodes: upper halves of ids, sorted */
	size_t conditional_count;
	size_t conditional_capacity;
	uint64_t updated_max;	  /* limit of rows that updates of whole graphs may add; 0: none */
	uint64_t unknown_from_ns; /* updates from then on are unknown; 0: all are known */
	uint64_t cyclic_count;	  /* nodes whose origins form a cycle or a chain that is too long */
};

#define CREATION_PENDING UINT32_MAX /* not resolved yet */

/* Appends a row. 0 or -ENOMEM. */
int nodes_add(struct nodes *nodes, const struct node *node);

#endif
