/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds graphs node by node for the checks.
 */
#include "conformance.h"

CUDA_KERNEL_NODE_PARAMS empty_node(void)
{
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = driver.empty,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
	};
}

bool add_kernel(CUgraph graph, CUgraphNode *tip, unsigned int width)
{
	CUDA_KERNEL_NODE_PARAMS params = empty_node();
	CUgraphNode before = *tip;

	params.gridDimX = width;
	return !driver.cuGraphAddKernelNode_v2(tip, graph, &before, before != NULL, &params);
}

bool add_child(CUgraph graph, CUgraphNode *tip, CUgraph child)
{
	CUgraphNode before = *tip;

	return !driver.cuGraphAddChildGraphNode(tip, graph, &before, before != NULL, child);
}

CUgraph *add_condition(CUgraph graph, CUgraphNode *tip, CUgraphConditionalNodeType type,
		       unsigned int size, unsigned int value, CUgraphConditionalHandle *handle_out)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphNode before = *tip;

	params.conditional.type = type;
	params.conditional.size = size;
	params.conditional.ctx = driver.context;
	if (driver.cuGraphConditionalHandleCreate(&params.conditional.handle, graph, driver.context,
						  value, CU_GRAPH_COND_ASSIGN_DEFAULT) ||
	    driver.cuGraphAddNode_v2(tip, graph, &before, NULL, before != NULL, &params))
		return NULL;
	if (handle_out)
		*handle_out = params.conditional.handle;
	return params.conditional.phGraph_out;
}

bool has_conditions(void)
{
	if (driver.cuGraphAddNode_v2 && driver.cuGraphConditionalHandleCreate)
		return true;
	puts("  this driver has no conditional nodes");
	return false;
}
