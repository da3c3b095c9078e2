/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver calls that build graphs.
 */
#include <string.h>

#include "simgpu/graph.h"

CUresult sim_graph_create(CUgraph *out, unsigned int flags)
{
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_graph_make();
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_graph_destroy(CUgraph graph)
{
	if (!sim_graph_is_valid(graph))
		return CUDA_ERROR_INVALID_VALUE;
	sim_graph_free(graph);
	return CUDA_SUCCESS;
}

CUresult sim_graph_clone_call(CUgraph *out, CUgraph original)
{
	if (!out || !sim_graph_is_valid(original))
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_graph_is_conditional(original))
		return CUDA_ERROR_NOT_SUPPORTED;
	*out = sim_graph_clone(original);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_graph_add_kernel_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				   size_t dependency_count, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct CUgraphNode_st content;
	CUresult result = sim_kernel_content(params, &content);

	return result ? result
		      : sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

CUresult sim_graph_add_memcpy_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				   size_t dependency_count, const CUDA_MEMCPY3D *copy,
				   CUcontext context)
{
	struct CUgraphNode_st content;
	CUresult result = sim_copy_content(copy, context, &content);

	return result ? result
		      : sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

CUresult sim_graph_add_memset_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				   size_t dependency_count, const CUDA_MEMSET_NODE_PARAMS *set,
				   CUcontext context)
{
	struct CUgraphNode_st content;
	CUresult result = sim_set_content(set, context, &content);

	return result ? result
		      : sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

CUresult sim_graph_add_host_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				 size_t dependency_count, const CUDA_HOST_NODE_PARAMS *params)
{
	struct CUgraphNode_st content;
	CUresult result = sim_host_content(params, &content);

	return result ? result
		      : sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

CUresult sim_graph_add_empty_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				  size_t dependency_count)
{
	const struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

	return sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

CUresult sim_graph_add_child_graph_node(CUgraphNode *out, CUgraph graph,
					const CUgraphNode *dependencies, size_t dependency_count,
					CUgraph child)
{
	const struct CUgraphNode_st content = {
		.type = CU_GRAPH_NODE_TYPE_GRAPH,
		.children = &child,
		.child_count = 1,
		.run_count = 1,
	};

	if (!sim_graph_is_valid(child) || child == graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_graph_is_conditional(child))
		return CUDA_ERROR_NOT_SUPPORTED;
	return sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

/* The value of a conditional handle. Kernels do not run here, so nothing changes it. */
struct condition {
	uint32_t graph_id;
	uint32_t is_assigned : 1;
	uint32_t value : 31;
};

CUresult sim_graph_conditional_handle_create(CUgraphConditionalHandle *out, CUgraph graph,
					     CUcontext context, unsigned int value,
					     unsigned int flags)
{
	const struct condition condition = {sim_graph_id(graph), flags & 1, value & INT32_MAX};

	if (!out || !condition.graph_id || !sim_context_is_valid(context) ||
	    flags > CU_GRAPH_COND_ASSIGN_DEFAULT || value > INT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(out, &condition, sizeof(*out));
	return CUDA_SUCCESS;
}

/* Sets which body runs, and how often. The value of WHILE is the number of its iterations. */
static CUresult set_bodies(CUgraphNode content, const CUDA_CONDITIONAL_NODE_PARAMS *params,
			   struct condition condition)
{
	static const uint32_t sizes_max[] = {
		[CU_GRAPH_COND_TYPE_IF] = 2, /* the second one is the else branch */
		[CU_GRAPH_COND_TYPE_WHILE] = 1,
		[CU_GRAPH_COND_TYPE_SWITCH] = INT32_MAX,
	};
	uint32_t value = condition.is_assigned ? condition.value : 0;

	if (params->type > CU_GRAPH_COND_TYPE_SWITCH || !params->size ||
	    params->size > sizes_max[params->type])
		return CUDA_ERROR_INVALID_VALUE;
	content->child_count = params->size;
	if (params->type == CU_GRAPH_COND_TYPE_WHILE) {
		content->run_count = value;
		return CUDA_SUCCESS;
	}
	content->running_child = params->type == CU_GRAPH_COND_TYPE_IF ? !value : value;
	content->run_count = content->running_child < content->child_count;
	return CUDA_SUCCESS;
}

/* Adds a conditional node. Other types of nodes have their own calls. */
CUresult sim_graph_add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
			    const CUgraphEdgeData *edges, size_t dependency_count,
			    CUgraphNodeParams *params)
{
	struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	struct condition condition;
	CUresult result;

	(void)edges;
	if (!params || !sim_graph_is_valid(graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return CUDA_ERROR_NOT_SUPPORTED;
	memcpy(&condition, &params->conditional.handle, sizeof(condition));
	if (condition.graph_id != graph->id)
		return CUDA_ERROR_INVALID_VALUE;
	result = set_bodies(&content, &params->conditional, condition);
	if (!result)
		result = sim_graph_add(graph, &content, dependencies, dependency_count, out);
	if (!result)
		params->conditional.phGraph_out = (*out)->children;
	return result;
}

CUresult sim_graph_add_dependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				    const CUgraphEdgeData *edges, size_t count)
{
	CUresult result = CUDA_SUCCESS;

	(void)edges; /* edge types affect only kernels that are really executed */
	if (!sim_graph_is_valid(graph) || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++) {
		if (!sim_graph_node_is_valid(to[i]) || to[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
		result = sim_graph_depend(to[i], &from[i], 1);
	}
	return result;
}

CUresult sim_graph_get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	if (!sim_graph_is_valid(graph) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	if (nodes) {
		for (size_t i = 0; i < *count; i++)
			nodes[i] = i < graph->node_count ? graph->nodes[i] : NULL;
	}
	if (!nodes || *count > graph->node_count)
		*count = graph->node_count;
	return CUDA_SUCCESS;
}

CUresult sim_graph_node_get_type(CUgraphNode node, CUgraphNodeType *type)
{
	if (!sim_graph_node_is_valid(node) || !type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = node->type;
	return CUDA_SUCCESS;
}
