/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph nodes of a log, and the tables that nodes.c derives from them.
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
	/* used by child_nodes.c: the node of the graph of which this is an instance */
	uint64_t instance_of;
	/* executable graph in which the node was changed; 0: the node was created */
	uint32_t graph_exec;
	uint32_t like_graph; /* if graph_exec is set: the graph that it was updated from */
	uint32_t stack;	     /* XT_STACK_ID of the call that created or changed it; 0 for clones */
	uint32_t thread;     /* XT_THREAD_ID */
	uint32_t type;	     /* CUgraphNodeType */
	uint32_t range;	     /* NVTX range of its creation */
	uint32_t creation;   /* used by nodes.c */
	/* used by model_autograd.c, as in struct autograd_call */
	uint32_t autograd;
	uint64_t sequence, node_sequence;
	uint32_t name;	/* XT_STRING_ID of the kernel's; 0: unknown */
	uint32_t order; /* used by nodes.c: position in the log */
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
	size_t made_count;
	/* by index in by_thread: skips ahead towards the next node without a known call */
	uint32_t *next_unresolved;
	/* creation times of the first and the last node in by_thread */
	uint64_t made_from_ns, made_until_ns;
	struct creation *creations; /* creation 0 is none */
	size_t creation_count;
	struct node_cache_entry *recent;
	/* executable graphs with conditional nodes: upper halves of ids, sorted */
	uint32_t *conditional;
	size_t conditional_count;
	size_t conditional_capacity;
	struct node_name *names;
	size_t name_count;
	size_t name_capacity;
	uint64_t updated_max;	  /* limit for rows added by updates of whole graphs; 0: none */
	uint64_t unknown_from_ns; /* updates from this time on are unknown; 0: all are known */
	uint64_t cyclic_count;	  /* nodes whose chain of origins is cyclic or too long */
};

#define CREATION_PENDING UINT32_MAX /* not resolved yet */

/* Append a row. */
void nodes_add(struct nodes *nodes, const struct node *node);
void nodes_add_name(struct nodes *nodes, const struct node_name *name);

#endif
