/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the simulated driver: what graph.c (building), capture.c (recording) and graph_exec.c
 * (running) share. As with the real driver, a graph is not to be changed by two threads at once.
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
	uint64_t id; /* as CUPTI numbers it */
	CUgraph graph;
	size_t index;	      /* order of creation in its graph */
	CUgraphNode original; /* what it was cloned from; may be gone */
	struct sim_maker maker;
	CUgraphNode *dependencies;
	size_t dependency_count;
	struct sim_shape shape;		/* KERNEL */
	struct sim_transfer transfer;	/* MEMCPY, MEMSET */
	struct sim_host_call host_call; /* HOST */
	CUgraph child;			/* GRAPH, CONDITIONAL (its body); owned */
	bool has_body_run;		/* CONDITIONAL: the condition holds */
	struct sim_span span;		/* while launched: relative to the graph's start */
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

/* NULL: no memory. To be freed with sim_graph_free(), which accepts NULL. */
CUgraph sim_graph_make(void);
void sim_graph_free(CUgraph graph);
CUgraph sim_graph_clone(CUgraph original);

/* Has it conditional nodes, at any depth? */
bool sim_graph_is_conditional(CUgraph graph);

/* NULL: there is none. */
CUgraphNode sim_graph_node_by_index(CUgraph graph, size_t index);

/* For graph_exec.c; see there. Called with child = graph and *next_index = its node count. */
void sim_graph_inline(CUgraph graph, CUgraph child, uint64_t *next_index);

/* A node as described by *content (type and what belongs to it; a child graph is cloned). */
CUresult sim_graph_add(CUgraph graph, const struct CUgraphNode_st *content,
		       const CUgraphNode *dependencies, size_t dependency_count, CUgraphNode *out);

/* Adds dependencies that the node does not have yet. */
CUresult sim_graph_depend(CUgraphNode node, const CUgraphNode *dependencies, size_t count);

/* The call in progress, as the one that makes nodes. */
struct sim_maker sim_graph_maker(void);

/* graph_params.c: what a node does, checked; all but the type and what it does is zero. */
CUresult sim_kernel_content(const CUDA_KERNEL_NODE_PARAMS *params, struct CUgraphNode_st *out);
CUresult sim_copy_content(const CUDA_MEMCPY3D *copy, CUcontext context, struct CUgraphNode_st *out);
CUresult sim_set_content(const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context,
			 struct CUgraphNode_st *out);
CUresult sim_host_content(const CUDA_HOST_NODE_PARAMS *params, struct CUgraphNode_st *out);

/*
 * graph_exec.c: the clone of that node in the executable graph, also where the node is one of a
 * child graph; the graph stays locked. NULL, and not locked, if there is none.
 */
CUgraphNode sim_graph_exec_lock_node(CUgraphExec exec, CUgraphNode node);
void sim_graph_exec_unlock(CUgraphExec exec);

/* Orders the nodes so that each comes after its dependencies; false: there is a cycle. */
bool sim_graph_sort(CUgraph graph);

#endif
