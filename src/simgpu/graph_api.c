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
	*out = sim_graph_clone(original);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_shape_from_params(const CUDA_KERNEL_NODE_PARAMS *params, struct sim_shape *out)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct sim_shape){
		.function = params->func ? params->func : (CUfunction)params->kern,
		.grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
		.block = {params->blockDimX, params->blockDimY, params->blockDimZ},
		.dynamic_shared_bytes = params->sharedMemBytes,
	};
	return sim_shape_check(out);
}

CUresult sim_graph_add_kernel_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				   size_t dependency_count, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	CUresult result = sim_shape_from_params(params, &content.shape);

	if (result)
		return result;
	return sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

static bool is_host(CUmemorytype type)
{
	return type == CU_MEMORYTYPE_HOST;
}

static uint8_t copy_kind(const CUDA_MEMCPY3D *copy)
{
	if (is_host(copy->srcMemoryType))
		return is_host(copy->dstMemoryType) ? XT_CUPTI_COPY_HTOH : XT_CUPTI_COPY_HTOD;
	return is_host(copy->dstMemoryType) ? XT_CUPTI_COPY_DTOH : XT_CUPTI_COPY_DTOD;
}

/* One row only: arrays and pitched copies are not simulated. */
CUresult sim_graph_add_memcpy_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				   size_t dependency_count, const CUDA_MEMCPY3D *copy,
				   CUcontext context)
{
	struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	const char *source;
	char *destination;

	if (!copy || !sim_context_is_valid(context))
		return CUDA_ERROR_INVALID_VALUE;
	if (copy->Height > 1 || copy->Depth > 1 || copy->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
	    copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return CUDA_ERROR_NOT_SUPPORTED;
	source = is_host(copy->srcMemoryType) ? copy->srcHost : (void *)(uintptr_t)copy->srcDevice;
	destination =
		is_host(copy->dstMemoryType) ? copy->dstHost : (void *)(uintptr_t)copy->dstDevice;
	if (!source || !destination)
		return CUDA_ERROR_INVALID_VALUE;
	content.transfer = (struct sim_transfer){
		.destination = destination + copy->dstXInBytes,
		.source = source + copy->srcXInBytes,
		.bytes = copy->WidthInBytes,
		.copy_kind = copy_kind(copy),
		.is_async = true,
	};
	return sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

CUresult sim_graph_add_memset_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				   size_t dependency_count, const CUDA_MEMSET_NODE_PARAMS *set,
				   CUcontext context)
{
	struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

	if (!set || !set->dst || !sim_context_is_valid(context) ||
	    (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4))
		return CUDA_ERROR_INVALID_VALUE;
	if (set->height > 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	content.transfer = (struct sim_transfer){
		.destination = (void *)(uintptr_t)set->dst,
		.bytes = set->width * set->elementSize,
		.value = set->value,
		.element_bytes = set->elementSize,
		.is_async = true,
	};
	return sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

CUresult sim_graph_add_host_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				 size_t dependency_count, const CUDA_HOST_NODE_PARAMS *params)
{
	struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_HOST};

	if (!params || !params->fn)
		return CUDA_ERROR_INVALID_VALUE;
	content.host_call = (struct sim_host_call){params->fn, params->userData};
	return sim_graph_add(graph, &content, dependencies, dependency_count, out);
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
	const struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = child};

	if (!sim_graph_is_valid(child) || child == graph)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_graph_add(graph, &content, dependencies, dependency_count, out);
}

CUresult sim_graph_add_dependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				    const CUgraphEdgeData *edges, size_t count)
{
	CUresult result = CUDA_SUCCESS;

	(void)edges; /* kinds of edges matter to kernels that are really executed */
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
