/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks CUDA graphs: each kernel of a replay can be traced to the call that created its node.
 */
#include <string.h>

#include "conformance.h"

#define DRIVER_API XT_CUPTI_CB_DOMAIN_DRIVER_API
#define RESOURCE   XT_CUPTI_CB_DOMAIN_RESOURCE
#define CREATED	   XT_CUPTI_RESOURCE_GRAPHNODE_CREATED
#define CLONED	   XT_CUPTI_RESOURCE_GRAPHNODE_CLONED

enum { CAPTURED_KERNELS = 3 };

static CUstream stream;

static bool capture(CUgraph *graph_out)
{
	expect(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
	       CUDA_SUCCESS);
	for (int i = 0; i < CAPTURED_KERNELS; i++)
		expect((i % 2 ? launch_spin(stream, 1000) : launch_empty(stream)) == CUDA_SUCCESS);
	expect(driver.cuStreamEndCapture(stream, graph_out) == CUDA_SUCCESS);
	return true;
}

/* Returns the last announcement of that node, or NULL. */
static const struct note *announcement(uint32_t cbid, uint64_t node_id)
{
	const struct note *found = NULL;

	for (size_t i = 0; i < client_note_count(); i++)
		if (client_note(i)->domain == RESOURCE && client_note(i)->cbid == cbid &&
		    client_note(i)->node_id == node_id)
			found = client_note(i);
	return found;
}

/*
 * Follows clones back to the node that a call created. Returns 0 if there is none. A clone is
 * announced as created first, and then as cloned. Only the second announcement counts.
 */
static uint64_t creation_of(uint64_t node_id)
{
	for (int hop = 0; hop < 8; hop++) {
		const struct note *clone = announcement(CLONED, node_id);

		if (!clone)
			return announcement(CREATED, node_id) ? node_id : 0;
		node_id = clone->original_node_id;
	}
	return 0;
}

static bool streams_begin(void)
{
	return stream || driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
}

static bool captured_launch_has_no_record(void)
{
	CUgraph graph;

	expect(streams_begin());
	client_clear();
	expect(capture(&graph));
	client_settle();
	expect(count_notes(DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, XT_CUPTI_API_ENTER) ==
	       CAPTURED_KERNELS);
	expect(client_kernel_count() == 0);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	return true;
}

static bool node_is_announced_inside_the_call(void)
{
	size_t seen_count = 0;
	CUgraph graph;

	expect(streams_begin());
	client_clear();
	expect(capture(&graph));
	for (size_t i = 1; i + 1 < client_note_count(); i++) {
		if (client_note(i)->domain != RESOURCE || client_note(i)->cbid != CREATED)
			continue;
		seen_count++;
		expect(client_note(i)->node_id);
		expect(client_note(i)->node_type == XT_CUPTI_NODE_KERNEL);
		expect(client_note(i - 1)->cbid == XT_CUPTI_CBID_cuLaunchKernel);
		expect(client_note(i - 1)->site == XT_CUPTI_API_ENTER);
		expect(client_note(i - 1)->tid == client_note(i)->tid);
		expect(client_note(i + 1)->site == XT_CUPTI_API_EXIT);
	}
	expect(seen_count == CAPTURED_KERNELS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	return true;
}

static bool replay_shares_the_correlation_id(void)
{
	CUgraphExec exec;
	CUgraph graph;

	expect(streams_begin());
	client_clear();
	expect(capture(&graph));
	expect(driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
	for (int replay = 0; replay < 2; replay++)
		expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == 2 * CAPTURED_KERNELS);
	for (size_t replay = 0; replay < 2; replay++) {
		const struct note *enter = find_note(DRIVER_API, XT_CUPTI_CBID_cuGraphLaunch,
						     XT_CUPTI_API_ENTER, replay);
		size_t kernel_count = 0;

		expect(enter);
		for (size_t i = 0; i < client_kernel_count(); i++)
			kernel_count +=
				client_kernel(i)->record.correlation_id == enter->correlation_id;
		expect(kernel_count == CAPTURED_KERNELS);
	}
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	return true;
}

static bool replayed_kernels_lead_to_their_creation(void)
{
	size_t captured_count;
	CUgraphExec exec;
	CUgraph graph;

	expect(streams_begin());
	client_clear();
	expect(capture(&graph));
	captured_count = client_note_count();
	expect(driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
	expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == CAPTURED_KERNELS);
	for (size_t i = 0; i < CAPTURED_KERNELS; i++) {
		const struct kernel_note *kernel = client_kernel(i);
		uint64_t created = creation_of(kernel->record.graph_node_id);

		expect(kernel->record.graph_node_id);
		expect(created && created != kernel->record.graph_node_id);
		expect(announcement(CREATED, created) < client_note(0) + captured_count);
		for (size_t j = 0; j < i; j++)
			expect(creation_of(client_kernel(j)->record.graph_node_id) != created);
	}
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	return true;
}

static bool replays_keep_their_node_ids(void)
{
	CUgraphExec exec;
	CUgraph graph;

	expect(streams_begin());
	client_clear();
	expect(capture(&graph));
	expect(driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
	expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
	expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
	client_settle();
	for (size_t i = 0; i < client_kernel_count(); i++) {
		size_t same_count = 0;

		for (size_t j = 0; j < client_kernel_count(); j++)
			same_count += client_kernel(i)->record.graph_node_id ==
				      client_kernel(j)->record.graph_node_id;
		expect(same_count == 2);
	}
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	return true;
}

static bool built_graph_leads_to_its_nodes(void)
{
	CUDA_KERNEL_NODE_PARAMS params = empty_node();
	CUgraphNode first;
	CUgraphNode second;
	CUgraphExec exec;
	CUgraph graph;

	expect(streams_begin());
	client_clear();
	expect(driver.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
	expect(!driver.cuGraphAddKernelNode_v2(&first, graph, NULL, 0, &params));
	expect(!driver.cuGraphAddKernelNode_v2(&second, graph, &first, 1, &params));
	expect(count_notes(RESOURCE, CREATED, 0) == 2);
	expect(driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
	expect(driver.cuGraphLaunch_ptsz(exec, stream) == CUDA_SUCCESS);
	client_settle();
	expect(find_note(DRIVER_API, XT_CUPTI_CBID_cuGraphLaunch_ptsz, XT_CUPTI_API_EXIT, 0));
	expect(client_kernel_count() == 2);
	expect(creation_of(client_kernel(0)->record.graph_node_id));
	expect(creation_of(client_kernel(1)->record.graph_node_id));
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	return true;
}

/*
 * Kernels of child graphs have node ids that were never announced. The upper half of an id is the
 * id of the executable graph, so the ids lead only to the replay.
 */
static bool child_graph_kernels_name_the_graph(void)
{
	CUDA_KERNEL_NODE_PARAMS params = empty_node();
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph child;
	CUgraph graph;

	expect(streams_begin());
	client_clear();
	expect(driver.cuGraphCreate(&child, 0) == CUDA_SUCCESS);
	expect(!driver.cuGraphAddKernelNode_v2(&node, child, NULL, 0, &params));
	expect(driver.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
	expect(!driver.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	expect(driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
	expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == 1);
	expect(client_kernel(0)->record.graph_node_id >> 32 == client_kernel(0)->record.graph_id);
	expect(!announcement(CREATED, client_kernel(0)->record.graph_node_id));
	expect(client_kernel(0)->record.correlation_id ==
	       find_note(DRIVER_API, XT_CUPTI_CBID_cuGraphLaunch, XT_CUPTI_API_ENTER, 0)
		       ->correlation_id);
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(child) == CUDA_SUCCESS);
	return true;
}

/* Returns the lower half of the id of the node that ran with that grid, or UINT32_MAX. */
static uint32_t index_of_width(unsigned int width)
{
	for (size_t i = 0; i < client_kernel_count(); i++)
		if (client_kernel(i)->record.grid[0] == (int)width)
			return (uint32_t)client_kernel(i)->record.graph_node_id;
	return UINT32_MAX;
}

/*
 * An executable graph numbers its own nodes first. The nodes of each child graph follow in order,
 * and then those of the children inside it.
 */
static bool child_graph_nodes_are_numbered_in_order(void)
{
	static const uint32_t index_by_width[] = {
		[1] = 0, [2] = 2, [3] = 4, [4] = 5, [5] = 7, [6] = 8, [7] = 9, [8] = 10};
	CUgraphNode tips[4] = {NULL};
	CUgraph graphs[4];
	CUgraphExec exec;

	expect(streams_begin());
	client_clear();
	for (int i = 0; i < 4; i++)
		expect(driver.cuGraphCreate(&graphs[i], 0) == CUDA_SUCCESS);
	expect(add_kernel(graphs[3], &tips[3], 6) && add_kernel(graphs[3], &tips[3], 7));
	expect(add_kernel(graphs[2], &tips[2], 4) && add_child(graphs[2], &tips[2], graphs[3]) &&
	       add_kernel(graphs[2], &tips[2], 5));
	expect(add_kernel(graphs[1], &tips[1], 8));
	expect(add_kernel(graphs[0], &tips[0], 1) && add_child(graphs[0], &tips[0], graphs[2]) &&
	       add_kernel(graphs[0], &tips[0], 2) && add_child(graphs[0], &tips[0], graphs[1]) &&
	       add_kernel(graphs[0], &tips[0], 3));
	expect(driver.cuGraphInstantiateWithFlags(&exec, graphs[0], 0) == CUDA_SUCCESS);
	expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == 8);
	for (unsigned int width = 1; width <= 8; width++)
		expect(index_of_width(width) == index_by_width[width]);
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	for (int i = 0; i < 4; i++)
		expect(driver.cuGraphDestroy(graphs[i]) == CUDA_SUCCESS);
	return true;
}

/* Adds a node whose body always runs, and returns its body. */
static bool add_if(CUgraph graph, CUgraphNode *tip, CUgraph *body_out)
{
	CUgraph *bodies = add_condition(graph, tip, CU_GRAPH_COND_TYPE_IF, 1, 1, NULL);

	if (bodies)
		*body_out = *bodies;
	return bodies != NULL;
}

static const struct kernel_note *kernel_of_width(unsigned int width)
{
	for (size_t i = 0; i < client_kernel_count(); i++)
		if (client_kernel(i)->record.grid[0] == (int)width)
			return client_kernel(i);
	return NULL;
}

/*
 * Nodes of bodies are numbered like those of child graphs, even if a body contains a child graph or
 * another condition. Their kernels have no correlation id and run in their own stream.
 */
static bool bodies_are_numbered_as_children(void)
{
	static const uint32_t index_by_width[] = {[1] = 0, [2] = 2, [3] = 4, [4] = 7, [7] = 10};
	CUgraph graph, child, body, inner;
	CUgraphNode tips[4] = {NULL};
	const struct note *enter;
	CUgraphExec exec;

	if (!has_conditions())
		return true;
	expect(streams_begin());
	client_clear();
	expect(driver.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
	expect(driver.cuGraphCreate(&child, 0) == CUDA_SUCCESS);
	expect(add_kernel(child, &tips[1], 5) && add_kernel(child, &tips[1], 6));
	expect(add_kernel(graph, &tips[0], 1) && add_if(graph, &tips[0], &body) &&
	       add_kernel(graph, &tips[0], 2) && add_child(graph, &tips[0], child) &&
	       add_kernel(graph, &tips[0], 3));
	expect(add_child(body, &tips[2], child) && add_if(body, &tips[2], &inner) &&
	       add_kernel(body, &tips[2], 4));
	expect(add_kernel(inner, &tips[3], 7));
	expect(driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
	expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
	client_settle();
	enter = find_note(DRIVER_API, XT_CUPTI_CBID_cuGraphLaunch, XT_CUPTI_API_ENTER, 0);
	expect(client_kernel_count() == 9);
	for (unsigned int width = 1; width <= 7; width++) {
		const struct kernel_note *kernel = kernel_of_width(width);
		const struct cupti_activity_kernel *record = &kernel->record;
		bool is_in_body = width == 4 || width == 7;

		expect(kernel);
		if (width == 5 || width == 6)
			continue; /* these run inside and outside the body */
		expect((uint32_t)record->graph_node_id == index_by_width[width]);
		expect(record->graph_node_id >> 32 == record->graph_id);
		expect(record->correlation_id == (is_in_body ? 0 : enter->correlation_id));
		expect(!is_in_body || record->stream_id != kernel_of_width(1)->record.stream_id);
	}
	for (size_t i = 0; i < client_kernel_count(); i++) {
		const struct cupti_activity_kernel *record = &client_kernel(i)->record;
		uint32_t index = (uint32_t)record->graph_node_id;

		if (record->grid[0] == 5)
			expect(index == 8 || index == 11);
		if (record->grid[0] == 6)
			expect(index == 9 || index == 12);
	}
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(child) == CUDA_SUCCESS);
	return true;
}

/* A graph with conditions cannot be a child of another graph, so only bodies contain bodies. */
static bool conditions_are_not_put_into_graphs(void)
{
	CUgraphNode tips[2] = {NULL};
	CUgraph graph, other, body;

	if (!has_conditions())
		return true;
	expect(streams_begin());
	expect(driver.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
	expect(driver.cuGraphCreate(&other, 0) == CUDA_SUCCESS);
	expect(add_if(graph, &tips[0], &body));
	expect(!add_child(other, &tips[1], graph));
	expect(driver.cuGraphDestroy(other) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	return true;
}

/* An update changes the parameters of an executable graph's nodes, but not their ids. */
static bool update_keeps_the_nodes(void)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphNode tips[2] = {NULL};
	CUgraph graphs[2];
	CUgraphExec exec;
	uint64_t ids[2];

	expect(streams_begin());
	client_clear();
	for (unsigned int i = 0; i < 2; i++) {
		expect(driver.cuGraphCreate(&graphs[i], 0) == CUDA_SUCCESS);
		expect(add_kernel(graphs[i], &tips[i], 10 + i));
	}
	expect(driver.cuGraphInstantiateWithFlags(&exec, graphs[0], 0) == CUDA_SUCCESS);
	for (unsigned int i = 0; i < 2; i++) {
		if (i)
			expect(!driver.cuGraphExecUpdate_v2(exec, graphs[1], &info));
		expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
		client_settle();
		expect(client_kernel_count() == i + 1);
		expect(client_kernel(i)->record.grid[0] == (int)(10 + i));
		ids[i] = client_kernel(i)->record.graph_node_id;
	}
	expect(ids[0] == ids[1]);
	expect(creation_of(ids[1]) >> 32 ==
	       find_note(RESOURCE, CREATED, 0, 0)->node_id >> 32); /* graphs[0]'s */
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	for (int i = 0; i < 2; i++)
		expect(driver.cuGraphDestroy(graphs[i]) == CUDA_SUCCESS);
	return true;
}

/*
 * The arguments of a call that changes a node identify it. They are the executable graph, whose id
 * is the upper half of its nodes' ids, and the node that the running node was cloned from.
 */
static bool changed_node_is_known_by_its_arguments(void)
{
	CUDA_KERNEL_NODE_PARAMS params = empty_node();
	const struct note *enter;
	CUgraphNode tip = NULL;
	uint64_t made_id = 0;
	uint32_t exec_id = 0;
	CUgraphExec exec;
	CUgraph graph;

	expect(streams_begin());
	client_clear();
	expect(driver.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
	expect(add_kernel(graph, &tip, 20));
	expect(driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
	expect(cupti.cuptiGetGraphNodeId && cupti.cuptiGetGraphExecId);
	expect(cupti.cuptiGetGraphNodeId(tip, &made_id) == XT_CUPTI_SUCCESS);
	expect(cupti.cuptiGetGraphExecId(exec, &exec_id) == XT_CUPTI_SUCCESS);
	params.gridDimX = 21;
	client_enable(DRIVER_API, EXEC_KERNEL_NODE_SET_PARAMS, true);
	expect(!driver.cuGraphExecKernelNodeSetParams_v2(exec, tip, &params));
	client_enable(DRIVER_API, EXEC_KERNEL_NODE_SET_PARAMS, false);
	expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
	client_settle();
	enter = find_note(DRIVER_API, EXEC_KERNEL_NODE_SET_PARAMS, XT_CUPTI_API_ENTER, 0);
	expect(enter);
	expect(enter->arguments[0] == exec && enter->arguments[1] == tip);
	expect(client_kernel_count() == 1 && client_kernel(0)->record.grid[0] == 21);
	expect(client_kernel(0)->record.graph_node_id >> 32 == exec_id);
	expect(announcement(CLONED, client_kernel(0)->record.graph_node_id)->original_node_id ==
	       made_id);
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	return true;
}

static bool capture_follows_events_to_other_streams(void)
{
	CUstream side;
	CUevent fork;
	CUevent join;
	CUgraphExec exec;
	CUgraph graph;

	expect(streams_begin());
	expect(driver.cuStreamCreate(&side, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
	expect(driver.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
	expect(driver.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
	client_clear();
	expect(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
	       CUDA_SUCCESS);
	expect(launch_empty(stream) == CUDA_SUCCESS);
	expect(driver.cuEventRecord(fork, stream) == CUDA_SUCCESS);
	expect(driver.cuStreamWaitEvent(side, fork, 0) == CUDA_SUCCESS);
	expect(launch_empty(side) == CUDA_SUCCESS);
	expect(launch_empty(stream) == CUDA_SUCCESS);
	expect(driver.cuEventRecord(join, side) == CUDA_SUCCESS);
	expect(driver.cuStreamWaitEvent(stream, join, 0) == CUDA_SUCCESS);
	expect(launch_empty(stream) == CUDA_SUCCESS);
	expect(driver.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
	expect(driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
	expect(driver.cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == 4);
	for (size_t i = 0; i < 4; i++)
		expect(creation_of(client_kernel(i)->record.graph_node_id));
	expect(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
	expect(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
	expect(driver.cuEventDestroy_v2(fork) == CUDA_SUCCESS);
	expect(driver.cuEventDestroy_v2(join) == CUDA_SUCCESS);
	expect(driver.cuStreamDestroy_v2(side) == CUDA_SUCCESS);
	return true;
}

static bool fork_capture(CUstream side, CUevent fork)
{
	expect(driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
	       CUDA_SUCCESS);
	expect(driver.cuEventRecord(fork, stream) == CUDA_SUCCESS);
	expect(driver.cuStreamWaitEvent(side, fork, 0) == CUDA_SUCCESS);
	expect(launch_empty(side) == CUDA_SUCCESS);
	return true;
}

/* graph_level.c counts open captures. */
static bool failed_end_of_capture_ends_it(void)
{
	CUstream side;
	CUevent fork;
	CUgraph graph;

	expect(streams_begin());
	expect(driver.cuStreamCreate(&side, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
	expect(driver.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
	expect(fork_capture(side, fork));
	expect(driver.cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	expect(driver.cuStreamEndCapture(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE);
	expect(fork_capture(side, fork));
	expect(driver.cuStreamEndCapture(side, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	expect(driver.cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	expect(driver.cuStreamEndCapture(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE);
	expect(driver.cuEventDestroy_v2(fork) == CUDA_SUCCESS);
	expect(driver.cuStreamDestroy_v2(side) == CUDA_SUCCESS);
	return true;
}

const struct check graph_checks[] = {
	{"failed_end_of_capture_ends_it", failed_end_of_capture_ends_it},
	{"captured_launch_has_no_record", captured_launch_has_no_record},
	{"node_is_announced_inside_the_call", node_is_announced_inside_the_call},
	{"replay_shares_the_correlation_id", replay_shares_the_correlation_id},
	{"replayed_kernels_lead_to_their_creation", replayed_kernels_lead_to_their_creation},
	{"replays_keep_their_node_ids", replays_keep_their_node_ids},
	{"built_graph_leads_to_its_nodes", built_graph_leads_to_its_nodes},
	{"child_graph_kernels_name_the_graph", child_graph_kernels_name_the_graph},
	{"child_graph_nodes_are_numbered_in_order", child_graph_nodes_are_numbered_in_order},
	{"bodies_are_numbered_as_children", bodies_are_numbered_as_children},
	{"conditions_are_not_put_into_graphs", conditions_are_not_put_into_graphs},
	{"update_keeps_the_nodes", update_keeps_the_nodes},
	{"changed_node_is_known_by_its_arguments", changed_node_is_known_by_its_arguments},
	{"capture_follows_events_to_other_streams", capture_follows_events_to_other_streams},
	{NULL, NULL},
};
