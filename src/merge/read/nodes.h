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
		unnoted; /* by place in by_thread: the next whose maker is not known, or nearer it */
	uint64_t made_from_ns, made_until_ns; /* when the first and the last of them was made */
	struct creation *creations;	      /* creation 0 is none */
	size_t creation_count;
	struct node_place *recent;
	uint32_t *
		conditional; /* executable graphs with conditional nodes: upper halves of ids, sorted */
	size_t conditional_count;
	size_t conditional_capacity;
	uint64_t updated_max;	  /* rows that updates of whole graphs may add; 0: any number */
	uint64_t unknown_from_ns; /* updates from then on are not known; 0: all are */
	uint64_t cyclic_count;	  /* nodes whose origins lead in a circle or too far */
};

/* 0 or -ENOMEM. */
int nodes_add(struct nodes *nodes, const struct node *node);

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
bool nodes_note_maker(struct nodes *nodes, uint32_t thread, uint64_t enter_ns, uint64_t exit_ns,
		      uint16_t api);

/* Nearly all calls are made before or after: those are told from the rest here. */
static inline bool nodes_note_call(struct nodes *nodes, uint32_t thread, uint64_t enter_ns,
				   uint64_t exit_ns, uint16_t api)
{
	return nodes->made_count && exit_ns >= nodes->made_from_ns &&
	       enter_ns <= nodes->made_until_ns &&
	       nodes_note_maker(nodes, thread, enter_ns, exit_ns, api);
}

#endif
