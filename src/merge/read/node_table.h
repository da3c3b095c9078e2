/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the graph nodes of a log, and what nodes.c derives from them.
 */
#ifndef XT_MERGE_NODE_TABLE_H
#define XT_MERGE_NODE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define CREATION_UNKNOWN 0

struct node {
	uint64_t id;
	uint64_t origin; /* id of the node it was cloned from, 0: made anew */
	uint64_t time_ns;
	uint64_t instance_of; /* child_nodes.c's: of which node of the graph it is an instance */
	uint32_t graph_exec;  /* where a node was changed, id being the graph's; 0: it was made */
	uint32_t like_graph;  /* with a graph_exec: the graph that it, or the node, was made like */
	uint32_t stack;	      /* XT_STACK_ID of who made or changed it, 0 for clones */
	uint32_t thread;      /* XT_THREAD_ID */
	uint32_t type;	      /* CUgraphNodeType */
	uint32_t range;	      /* NVTX range in which it was made */
	uint32_t creation;    /* nodes.c's */
	uint32_t order;	      /* nodes.c's: place in the log */
};

struct creation {
	uint32_t stack; /* XT_STACK_ID */
	uint32_t range; /* NVTX range around it */
	uint16_t api;	/* place in the model's apis, 0: not known (yet) */
};

/* All zeros is an empty table. */
struct nodes {
	struct node *rows; /* by id and time, once indexed */
	size_t count;
	size_t capacity;
	uint32_t *by_thread; /* places in rows by thread and time: those that were made anew */
	size_t made_count;
	uint32_t *
		next_unresolved; /* by place in by_thread: the next whose maker is not known, or nearer it */
	uint64_t made_from_ns, made_until_ns; /* when the first and the last of them was made */
	struct creation *creations;	      /* creation 0 is none */
	size_t creation_count;
	struct node_cache_entry *recent;
	uint32_t *
		conditional; /* executable graphs with conditional nodes: upper halves of ids, sorted */
	size_t conditional_count;
	size_t conditional_capacity;
	uint64_t updated_max;	  /* rows that updates of whole graphs may add; 0: any number */
	uint64_t unknown_from_ns; /* updates from then on are not known; 0: all are */
	uint64_t cyclic_count;	  /* nodes whose origins lead in a circle or too far */
};

#define CREATION_PENDING UINT32_MAX /* not resolved yet */

/* Appends a row. 0 or -ENOMEM. */
int nodes_add(struct nodes *nodes, const struct node *node);

#endif
