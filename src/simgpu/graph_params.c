/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks and converts the parameters of graph nodes. A program gives them when it adds a node, and
 * when it changes one in a graph or in an executable graph.
 */
#include "simgpu/graph.h"

CUresult sim_kernel_content(const CUDA_KERNEL_NODE_PARAMS *params, struct CUgraphNode_st *out)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_KERNEL};
	out->shape = (struct sim_shape){
		.function = params->func ? params->func : (CUfunction)params->kern,
		.grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
		.block = {params->blockDimX, params->blockDimY, params->blockDimZ},
		.dynamic_shared_bytes = params->sharedMemBytes,
	};
	return sim_shape_check(&out->shape);
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

/* Only one row: arrays and pitched copies are not simulated. */
CUresult sim_copy_content(const CUDA_MEMCPY3D *copy, CUcontext context, struct CUgraphNode_st *out)
{
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
	*out = (struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	out->transfer = (struct sim_transfer){
		.destination = destination + copy->dstXInBytes,
		.source = source + copy->srcXInBytes,
		.bytes = copy->WidthInBytes,
		.copy_kind = copy_kind(copy),
		.is_async = true,
	};
	return CUDA_SUCCESS;
}

CUresult sim_set_content(const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context,
			 struct CUgraphNode_st *out)
{
	if (!set || !set->dst || !sim_context_is_valid(context) ||
	    (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4))
		return CUDA_ERROR_INVALID_VALUE;
	if (set->height > 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	*out = (struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_MEMSET};
	out->transfer = (struct sim_transfer){
		.destination = (void *)(uintptr_t)set->dst,
		.bytes = set->width * set->elementSize,
		.value = set->value,
		.element_bytes = set->elementSize,
		.is_async = true,
	};
	return CUDA_SUCCESS;
}

CUresult sim_host_content(const CUDA_HOST_NODE_PARAMS *params, struct CUgraphNode_st *out)
{
	if (!params || !params->fn)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_HOST};
	out->host_call = (struct sim_host_call){params->fn, params->userData};
	return CUDA_SUCCESS;
}

/* Changes what the node does, and makes this thread's call its maker. */
static CUresult set_node(CUgraphNode node, const struct CUgraphNode_st *content)
{
	if (!sim_graph_node_is_valid(node) || node->type != content->type)
		return CUDA_ERROR_INVALID_VALUE;
	node->shape = content->shape;
	node->transfer = content->transfer;
	node->host_call = content->host_call;
	node->maker = sim_graph_maker();
	return CUDA_SUCCESS;
}

static CUresult set_in_graph(CUgraphNode node, const struct CUgraphNode_st *content)
{
	CUresult result = set_node(node, content);

	if (!result && sim_truth_is_on())
		sim_truth_node_set(node->id, 0);
	return result;
}

static CUresult set_in_exec(CUgraphExec exec, CUgraphNode node,
			    const struct CUgraphNode_st *content)
{
	CUgraphNode clone = sim_graph_exec_lock_node(exec, node);
	CUresult result;

	if (!clone)
		return CUDA_ERROR_INVALID_VALUE;
	result = set_node(clone, content);
	sim_graph_exec_unlock(exec);
	if (!result && sim_truth_is_on())
		sim_truth_node_set(node->id, sim_graph_exec_id(exec));
	return result;
}

CUresult sim_graph_kernel_node_set_params(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct CUgraphNode_st content;
	CUresult result = sim_kernel_content(params, &content);

	return result ? result : set_in_graph(node, &content);
}

/* Uses the current context. */
CUresult sim_graph_memcpy_node_set_params(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	struct CUgraphNode_st content;
	CUresult result = sim_copy_content(copy, sim_context_current(), &content);

	return result ? result : set_in_graph(node, &content);
}

CUresult sim_graph_memset_node_set_params(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *set)
{
	struct CUgraphNode_st content;
	CUresult result = sim_set_content(set, sim_context_current(), &content);

	return result ? result : set_in_graph(node, &content);
}

CUresult sim_graph_exec_kernel_node_set_params(CUgraphExec exec, CUgraphNode node,
					       const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct CUgraphNode_st content;
	CUresult result = sim_kernel_content(params, &content);

	return result ? result : set_in_exec(exec, node, &content);
}

CUresult sim_graph_exec_memcpy_node_set_params(CUgraphExec exec, CUgraphNode node,
					       const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct CUgraphNode_st content;
	CUresult result = sim_copy_content(copy, context, &content);

	return result ? result : set_in_exec(exec, node, &content);
}

CUresult sim_graph_exec_memset_node_set_params(CUgraphExec exec, CUgraphNode node,
					       const CUDA_MEMSET_NODE_PARAMS *set,
					       CUcontext context)
{
	struct CUgraphNode_st content;
	CUresult result = sim_set_content(set, context, &content);

	return result ? result : set_in_exec(exec, node, &content);
}
