/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on graphs: capture, build node by node, clone, nest, instantiate, replay from any
 * thread, update, destroy.
 */
#include <stddef.h>

#include "program.h"

static CUDA_KERNEL_NODE_PARAMS pick_kernel_params(struct job *job)
{
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = pick_kernel(job),
		.gridDimX = 1 + pick(job, 8),
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
	};
}

static void fill_graph(struct job *job, CUgraph graph, unsigned count_max);

/* Picks a graph; NULL if there is none. */
static struct graph *pick_graph(struct job *job)
{
	return job->graph_count ? &job->graphs[pick(job, job->graph_count)] : NULL;
}

/* Instantiates a graph and keeps both, or neither. */
static inline __attribute__((always_inline)) void keep(struct job *job, CUgraph graph)
{
	CUgraphExec exec;

	if (job->graph_count == GRAPHS_MAX ||
	    CU(cuGraphInstantiate, &exec, graph, 0) != CUDA_SUCCESS) {
		CU(cuGraphDestroy, graph);
		return;
	}
	if (!pick(job, 4)) {
		CU(cuGraphDestroy, graph);
		graph = NULL;
	}
	job->graphs[job->graph_count++] = (struct graph){graph, exec};
}

FRAME_FUNCTION void fork_capture(struct job *job)
{
	ENTER();
	if (!job->is_forked && CU(cuEventRecord, job->fork_event, job->captured) == CUDA_SUCCESS &&
	    CU(cuStreamWaitEvent, job->side, job->fork_event, 0) == CUDA_SUCCESS)
		job->is_forked = true;
	LEAVE();
}

FRAME_FUNCTION void join_capture(struct job *job)
{
	ENTER();
	if (job->is_forked && CU(cuEventRecord, job->join_event, job->side) == CUDA_SUCCESS &&
	    CU(cuStreamWaitEvent, job->captured, job->join_event, 0) == CUDA_SUCCESS)
		job->is_forked = false;
	LEAVE();
}

FRAME_FUNCTION void launch_into_capture(struct job *job)
{
	struct graph *graph = pick_graph(job);

	ENTER();
	if (graph && !job->is_flat)
		CU(cuGraphLaunch, graph->exec, pick_stream(job));
	LEAVE();
}

FRAME_FUNCTION void capture_graph(struct job *job)
{
	CUgraph graph = NULL;

	ENTER();
	job->side = job->streams[1];
	if (CU(cuStreamBeginCapture, job->streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
	    CUDA_SUCCESS) {
		job->captured = job->streams[0];
		for (unsigned i = 0, count = 1 + pick(job, 3); i < count; i++)
			descend(job);
		launch_kernel(job);
		join_capture(job);
		CU(cuStreamEndCapture, job->captured, &graph);
		job->captured = NULL;
		job->is_forked = false;
	}
	if (graph)
		keep(job, graph);
	LEAVE();
}

static void CUDA_CB do_nothing(void *unused)
{
	(void)unused;
}

static CUDA_MEMCPY3D pick_copy_params(struct job *job)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = pick(job, 2) ? job->pinned_buffer : job->pageable_buffer,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = job->device_buffer,
		.WidthInBytes = 1 + pick(job, BUFFER_BYTES),
		.Height = 1,
		.Depth = 1,
	};
}

static CUDA_MEMSET_NODE_PARAMS pick_set_params(struct job *job)
{
	return (CUDA_MEMSET_NODE_PARAMS){
		.dst = job->device_buffer,
		.elementSize = 4,
		.width = 1 + pick(job, BUFFER_BYTES / 4),
		.height = 1,
	};
}

static FRAME_FUNCTION CUgraphNode add_copy_node(struct job *job, CUgraph graph,
						const CUgraphNode *after, size_t after_count)
{
	CUDA_MEMCPY3D copy = pick_copy_params(job);
	CUgraphNode node = NULL;

	ENTER();
	if (!job->without_copies)
		CU(cuGraphAddMemcpyNode, &node, graph, after, after_count, &copy,
		   job->gpu->context);
	LEAVE();
	return node;
}

static FRAME_FUNCTION CUgraphNode add_set_node(struct job *job, CUgraph graph,
					       const CUgraphNode *after, size_t after_count)
{
	CUDA_MEMSET_NODE_PARAMS set = pick_set_params(job);
	CUgraphNode node = NULL;

	ENTER();
	CU(cuGraphAddMemsetNode, &node, graph, after, after_count, &set, job->gpu->context);
	LEAVE();
	return node;
}

static FRAME_FUNCTION CUgraphNode add_other_node(struct job *job, CUgraph graph,
						 const CUgraphNode *after, size_t after_count)
{
	CUDA_HOST_NODE_PARAMS host = {.fn = do_nothing};
	struct graph *child = pick_graph(job);
	CUgraphNode node = NULL;

	ENTER();
	switch (pick(job, 3)) {
	case 0:
		CU(cuGraphAddHostNode, &node, graph, after, after_count, &host);
		break;
	case 1:
		CU(cuGraphAddEmptyNode, &node, graph, after, after_count);
		break;
	case 2:
		if (child && child->graph && !job->is_flat)
			CU(cuGraphAddChildGraphNode, &node, graph, after, after_count,
			   child->graph);
		break;
	}
	LEAVE();
	return node;
}

static FRAME_FUNCTION CUgraphNode add_condition(struct job *job, CUgraph graph,
						const CUgraphNode *after, size_t after_count)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUDA_CONDITIONAL_NODE_PARAMS *condition = &params.conditional;
	CUgraphNode node = NULL;

	ENTER();
	condition->size = 1;
	condition->ctx = job->gpu->context;
	if (!job->is_flat &&
	    CU(cuGraphConditionalHandleCreate, &condition->handle, graph, job->gpu->context,
	       pick(job, 4) != 0, CU_GRAPH_COND_ASSIGN_DEFAULT) == CUDA_SUCCESS &&
	    CU(cuGraphAddNode_v2, &node, graph, after, NULL, after_count, &params) == CUDA_SUCCESS)
		fill_graph(job, condition->phGraph_out[0], 3);
	LEAVE();
	return node;
}

static FRAME_FUNCTION CUgraphNode add_kernel_node(struct job *job, CUgraph graph,
						  const CUgraphNode *after, size_t after_count)
{
	CUDA_KERNEL_NODE_PARAMS params = pick_kernel_params(job);
	CUgraphNode node = NULL;

	ENTER();
	CU(cuGraphAddKernelNode, &node, graph, after, after_count, &params);
	LEAVE();
	return node;
}

/* Adds nodes. */
static FRAME_FUNCTION void fill_graph(struct job *job, CUgraph graph, unsigned count_max)
{
	static CUgraphNode (*const adders[])(struct job *, CUgraph, const CUgraphNode *, size_t) = {
		add_kernel_node, add_kernel_node, add_copy_node,
		add_set_node,	 add_other_node,  add_condition};
	CUgraphNode nodes[NODES_MAX];
	size_t node_count = 0;

	ENTER();
	for (unsigned i = 0, count = 1 + pick(job, count_max); i < count; i++) {
		size_t after_count = node_count ? pick(job, 2) : 0;
		const CUgraphNode *after = &nodes[node_count ? pick(job, (unsigned)node_count) : 0];
		CUgraphNode node = adders[pick(job, 6)](job, graph, after, after_count);

		if (node)
			nodes[node_count++] = node;
	}
	if (node_count > 1 && pick(job, 2))
		CU(cuGraphAddDependencies, graph, &nodes[0], &nodes[node_count - 1], NULL, 1);
	LEAVE();
}

FRAME_FUNCTION void build_graph(struct job *job)
{
	CUgraph graph = NULL;

	ENTER();
	CU(cuGraphCreate, &graph, 0);
	if (graph) {
		fill_graph(job, graph, NODES_MAX);
		keep(job, graph);
	}
	LEAVE();
}

FRAME_FUNCTION void clone_graph(struct job *job)
{
	struct graph *original = pick_graph(job);
	CUgraph clone;

	ENTER();
	if (original && original->graph &&
	    CU(cuGraphClone, &clone, original->graph) == CUDA_SUCCESS)
		keep(job, clone);
	LEAVE();
}

FRAME_FUNCTION void instantiate_again(struct job *job)
{
	struct graph *graph = pick_graph(job);
	CUgraphExec exec;

	ENTER();
	if (graph && graph->graph &&
	    CU(cuGraphInstantiate, &exec, graph->graph, 0) == CUDA_SUCCESS) {
		CU(cuGraphExecDestroy, graph->exec);
		graph->exec = exec;
	}
	LEAVE();
}

FRAME_FUNCTION void replay_graph(struct job *job)
{
	struct graph *graph = pick_graph(job);
	CUstream stream = pick_stream(job);

	ENTER();
	if (graph && pick(job, 4) == 0)
		CU(cuGraphLaunch_ptsz, graph->exec, stream);
	else if (graph)
		CU(cuGraphLaunch, graph->exec, stream);
	LEAVE();
}

FRAME_FUNCTION void replay_shared(struct job *job)
{
	CUgraphExec exec = job->shared->graphs[pick(job, SHARED_GRAPHS)].exec;

	ENTER();
	if (exec && job->gpu == &job->shared->gpus[0])
		CU(cuGraphLaunch, exec, pick_stream(job));
	LEAVE();
}

/* Fails unless the two graphs match. */
FRAME_FUNCTION void update_graph(struct job *job)
{
	struct graph *graph = pick_graph(job);
	struct graph *from = pick_graph(job);
	CUgraphExecUpdateResultInfo info;

	ENTER();
	if (graph && pick(job, 2))
		from = graph;
	if (graph && from->graph)
		CU(cuGraphExecUpdate, graph->exec, from->graph, &info);
	LEAVE();
}

/* Changes a node in the graph, or, if exec is not NULL, in that executable graph. */
static FRAME_FUNCTION void change_node(struct job *job, CUgraphExec exec, CUgraphNode node,
				       CUgraphNodeType type)
{
	CUDA_KERNEL_NODE_PARAMS kernel = pick_kernel_params(job);
	CUDA_MEMCPY3D copy = pick_copy_params(job);
	CUDA_MEMSET_NODE_PARAMS set = pick_set_params(job);
	CUcontext context = job->gpu->context;

	ENTER();
	if (type == CU_GRAPH_NODE_TYPE_KERNEL && exec)
		CU(cuGraphExecKernelNodeSetParams, exec, node, &kernel);
	else if (type == CU_GRAPH_NODE_TYPE_KERNEL)
		CU(cuGraphKernelNodeSetParams, node, &kernel);
	else if (type == CU_GRAPH_NODE_TYPE_MEMCPY && exec)
		CU(cuGraphExecMemcpyNodeSetParams, exec, node, &copy, context);
	else if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
		CU(cuGraphMemcpyNodeSetParams, node, &copy);
	else if (type == CU_GRAPH_NODE_TYPE_MEMSET && exec)
		CU(cuGraphExecMemsetNodeSetParams, exec, node, &set, context);
	else if (type == CU_GRAPH_NODE_TYPE_MEMSET)
		CU(cuGraphMemsetNodeSetParams, node, &set);
	LEAVE();
}

/* Updates any node. Fails for nodes that the executable graph does not have. */
FRAME_FUNCTION void update_node(struct job *job)
{
	struct graph *graph = pick_graph(job);
	CUgraphNode nodes[NODES_MAX];
	size_t count = NODES_MAX;
	CUgraphNodeType type;
	CUgraphNode node;

	ENTER();
	if (graph && graph->graph && !CU(cuGraphGetNodes, graph->graph, nodes, &count) && count) {
		node = nodes[pick(job, (unsigned)count)];
		if (!CU(cuGraphNodeGetType, node, &type))
			change_node(job, pick(job, 3) ? graph->exec : NULL, node, type);
	}
	LEAVE();
}

FRAME_FUNCTION void drop_graph(struct job *job)
{
	struct graph *doomed = pick_graph(job);

	ENTER();
	if (doomed) {
		CU(cuGraphExecDestroy, doomed->exec);
		if (doomed->graph)
			CU(cuGraphDestroy, doomed->graph);
		*doomed = job->graphs[--job->graph_count];
	}
	LEAVE();
}
