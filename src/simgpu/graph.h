/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the simulated driver, which graph.c builds and captures, and graph_exec.c runs. Two
 * threads must not change a graph at the same time, as with the real driver.
 */
#ifndef XTRACE_SIMGPU_GRAPH_H
#define XTRACE_SIMGPU_GRAPH_H

#include "simgpu/sim.h"

struct sim_host_call {
	CUhostFn function;
	void *user_data;
};

struct CUgraphNode_st {
	uint32_t magic;
	CUgraphNodeType type;
	uint64_t id; /* CUPTI's number */
	CUgraph graph;
	size_t index;	      /* order of creation in its graph */
	CUgraphNode original; /* the node it was cloned from; may be freed */
	struct sim_maker maker;
	CUgraphNode *dependencies;
	size_t dependency_count;
	struct sim_shape shape;		/* KERNEL */
	struct sim_transfer transfer;	/* MEMCPY, MEMSET */
	struct sim_host_call host_call; /* HOST */
	CUgraph *children;		/* GRAPH (one), CONDITIONAL (its bodies); owned */
	uint32_t child_count;
	uint32_t running_child; /* the only one that runs */
	uint32_t run_count;	/* how often it runs in each launch */
	struct sim_span span;	/* while launched: relative to the start of its graph */
	uint64_t run_period_ns; /* while launched: from one run of the child to the next */
};

struct CUgraph_st {
	uint32_t magic;
	uint32_t id;
	CUgraphNode *nodes; /* owned */
	size_t node_count;
	size_t node_capacity;
};

bool sim_graph_is_valid(CUgraph graph);
bool sim_graph_node_is_valid(CUgraphNode node);

/* Returns NULL if there is no memory. sim_graph_free() accepts NULL. */
CUgraph sim_graph_make(void);
void sim_graph_free(CUgraph graph);
CUgraph sim_graph_clone(CUgraph original);

/* Does it have conditional nodes? Its child graphs cannot have any. */
bool sim_graph_is_conditional(CUgraph graph);

/* Returns NULL if there is none. */
CUgraphNode sim_graph_node_by_index(CUgraph graph, size_t index);

/* For graph_exec.c. The outermost call has child = graph and *next_index = its node count. */
void sim_graph_inline(CUgraph graph, CUgraph child, uint64_t *next_index);

/*
 * Adds a node with the type and parameters of *content. Child graphs are cloned. If there are none,
 * the node gets empty ones.
 */
CUresult sim_graph_add(CUgraph graph, const struct CUgraphNode_st *content,
		       const CUgraphNode *dependencies, size_t dependency_count, CUgraphNode *out);

/* The same in the graph that captures the stream, after the work that was captured before. */
CUresult sim_capture(CUstream stream, const struct CUgraphNode_st *content);

/*
 * A real driver keeps a second, hidden copy of an executable graph. It announces the start of the
 * creation of these nodes, but never their completion.
 */
void sim_graph_announce_hidden(CUgraph graph);

/* Adds dependencies that the node does not have yet. */
CUresult sim_graph_depend(CUgraphNode node, const CUgraphNode *dependencies, size_t count);

/* Returns the call in progress, to be stored as the maker of nodes. */
struct sim_maker sim_graph_maker(void);

/* Orders the nodes so that each follows its dependencies. False if there is a cycle. */
bool sim_graph_sort(CUgraph graph);

#endif
