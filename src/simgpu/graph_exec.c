/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver calls that build, instantiate and launch graphs. An executable graph owns a clone of
 * its graph. Activity records have the ids of the clone and of its nodes.
 *
 * Nodes run at the same time if their dependencies allow it. All are in the stream of the launch,
 * except those in bodies of conditional nodes, which the device itself launches.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simgpu/graph.h"

enum { BUFFER_RECORDS = 100000, BUFFERS_ALLOCATED = 3 }; /* the defaults of CUPTI */

struct CUgraphExec_st {
	uint32_t magic;
	uint32_t id;
	CUgraph graph;	       /* owned, sorted */
	pthread_mutex_t lock;  /* serialises launches: nodes store the times of one launch */
	uint32_t stream_id;    /* of the bodies of conditional nodes */
	bool has_whole_record; /* GRAPH_TRACE was enabled at the end of the instantiation */
	/*
	 * CUPTI was in use before the instantiation. If so, kernels in bodies have records without
	 * a correlation id. If not, only their first run has one, with that of the launch.
	 */
	bool has_node_records;
	_Atomic uint64_t tail_ns; /* launches of one executable graph never overlap */
};

static bool is_exec(CUgraphExec exec)
{
	return exec && exec->magic == SIM_MAGIC_EXEC;
}

uint32_t sim_graph_exec_id(CUgraphExec exec)
{
	return is_exec(exec) ? exec->graph->id : 0;
}

static void exec_notify(uint32_t cbid, CUgraphExec exec, CUgraph source)
{
	struct cupti_graph_data data = {.graph = source, .graph_exec = exec};

	sim_resource_notify(cbid, sim_context_current(), NULL, &data);
}

CUresult sim_graph_instantiate_with_flags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	uint64_t node_count;
	CUgraphExec exec;

	if (!out || !sim_graph_is_valid(graph) || flags & ~15ull)
		return CUDA_ERROR_INVALID_VALUE;
	exec = calloc(1, sizeof(*exec));
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->magic = SIM_MAGIC_EXEC;
	exec->has_node_records = atomic_load(&sim_switches.was_used);
	pthread_mutex_init(&exec->lock, NULL);
	exec->graph = sim_graph_clone(graph);
	if (!exec->graph || !sim_graph_sort(exec->graph)) {
		CUresult result = exec->graph ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;

		sim_graph_free(exec->graph);
		free(exec);
		return result;
	}
	sim_graph_announce_hidden(exec->graph);
	exec->has_whole_record = sim_activity_is_on(SIM_SWITCH_GRAPH);
	exec_notify(XT_CUPTI_RESOURCE_GRAPHEXEC_CREATE_STARTING, exec, graph);
	if (sim_graph_is_conditional(graph))
		exec->stream_id = sim_stream_take_id();
	node_count = exec->graph->node_count;
	sim_graph_inline(exec->graph, exec->graph, &node_count);
	exec_notify(XT_CUPTI_RESOURCE_GRAPHEXEC_CREATED, exec, graph);
	*out = exec;
	return CUDA_SUCCESS;
}

/* Launches in flight already have their times, so they no longer need the graph. */
CUresult sim_graph_exec_destroy(CUgraphExec exec)
{
	if (!is_exec(exec))
		return CUDA_ERROR_INVALID_VALUE;
	exec_notify(XT_CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING, exec, NULL);
	exec->magic = SIM_MAGIC_DEAD;
	sim_graph_free(exec->graph);
	pthread_mutex_destroy(&exec->lock);
	free(exec);
	return CUDA_SUCCESS;
}

CUresult sim_graph_upload(CUgraphExec exec, CUstream handle)
{
	CUresult error;
	CUstream stream = sim_stream_resolve(handle, &error);

	if (!is_exec(exec))
		return CUDA_ERROR_INVALID_VALUE;
	return stream ? CUDA_SUCCESS : error;
}

static CUgraphNode find_clone(CUgraph graph, CUgraphNode original)
{
	CUgraphNode found = NULL;

	for (size_t i = 0; i < graph->node_count && !found; i++) {
		CUgraphNode node = graph->nodes[i];

		if (node->original == original)
			return node;
		for (uint32_t j = 0; j < node->child_count && !found; j++)
			found = find_clone(node->children[j], original);
	}
	return found;
}

static bool depends_on_index(CUgraphNode node, size_t index)
{
	for (size_t i = 0; i < node->dependency_count; i++)
		if (node->dependencies[i]->index == index)
			return true;
	return false;
}

/* Can `graph` be updated from `from`? *culprit is the node of `from` that differs. */
static CUgraphExecUpdateResult compare(CUgraph graph, CUgraph from, CUgraphNode *culprit)
{
	if (graph->node_count != from->node_count)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0; i < from->node_count; i++) {
		CUgraphNode theirs = from->nodes[i];
		CUgraphNode ours = sim_graph_node_by_index(graph, theirs->index);
		CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;

		*culprit = theirs;
		if (ours->type != theirs->type)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (ours->dependency_count != theirs->dependency_count)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		for (size_t j = 0; j < theirs->dependency_count; j++)
			if (!depends_on_index(ours, theirs->dependencies[j]->index))
				return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (ours->child_count != theirs->child_count)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		for (uint32_t j = 0; j < theirs->child_count && !result; j++)
			result = compare(ours->children[j], theirs->children[j], culprit);
		if (result)
			return result;
	}
	*culprit = NULL;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static void update(CUgraph graph, CUgraph from, bool is_child)
{
	for (size_t i = 0; i < from->node_count; i++) {
		CUgraphNode theirs = from->nodes[i];
		CUgraphNode ours = sim_graph_node_by_index(graph, theirs->index);

		ours->shape = theirs->shape;
		ours->transfer = theirs->transfer;
		ours->host_call = theirs->host_call;
		ours->maker = theirs->maker;
		ours->maker.is_of_child |= is_child;
		for (uint32_t j = 0; j < theirs->child_count; j++)
			update(ours->children[j], theirs->children[j], true);
	}
}

/* The nodes and their ids stay. Only their parameters change. */
CUresult sim_graph_exec_update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	CUgraphExecUpdateResultInfo found = {0};

	if (!is_exec(exec) || !sim_graph_is_valid(graph) || !info)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&exec->lock);
	found.result = compare(exec->graph, graph, &found.errorNode);
	if (!found.result)
		update(exec->graph, graph, false);
	pthread_mutex_unlock(&exec->lock);
	*info = found;
	if (!found.result && sim_truth_is_on())
		sim_truth_update(exec->graph->id, graph->id);
	return found.result ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_SUCCESS;
}

struct launch {
	CUgraphExec exec;
	CUstream stream;
	bool is_recorded_whole;
	bool is_faulty; /* the device fails: the work has no times */
};

/* The enclosing runs of a graph inside another one. */
struct nesting {
	bool is_in_body;
	bool is_repeated; /* in an iteration after the first one */
};

static uint64_t node_duration_ns(CUgraphNode node, CUstream stream)
{
	switch (node->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return sim_kernel_duration_ns(&node->shape,
					      atomic_fetch_add(&stream->launch_count, 1));
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return sim_transfer_duration_ns(&node->transfer);
	default:
		return 0;
	}
}

static uint64_t plan(CUgraph graph, CUstream stream);

/* All runs of a child take equally long. */
static uint64_t plan_child(CUgraphNode node, CUstream stream)
{
	if (!node->run_count)
		return 0;
	node->run_period_ns =
		plan(node->children[node->running_child], stream) + SIM_NODE_LATENCY_NS;
	return node->run_count * node->run_period_ns - SIM_NODE_LATENCY_NS;
}

/* Gives each node its span, relative to the start of its graph. Returns the end of the last. */
static uint64_t plan(CUgraph graph, CUstream stream)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < graph->node_count; i++) {
		CUgraphNode node = graph->nodes[i];
		uint64_t ready_ns = 0;

		for (size_t j = 0; j < node->dependency_count; j++)
			if (node->dependencies[j]->span.end_ns + SIM_NODE_LATENCY_NS > ready_ns)
				ready_ns = node->dependencies[j]->span.end_ns + SIM_NODE_LATENCY_NS;
		node->span.start_ns = ready_ns;
		node->span.end_ns = ready_ns + (node->child_count ? plan_child(node, stream)
								  : node_duration_ns(node, stream));
		if (node->span.end_ns > last_ns)
			last_ns = node->span.end_ns;
	}
	return last_ns;
}

/* Counts the kernels that a launch runs. If !is_counted, counts only those in bodies. */
static uint64_t count_kernels(CUgraph graph, bool is_counted)
{
	uint64_t count = 0;

	for (size_t i = 0; i < graph->node_count; i++) {
		CUgraphNode node = graph->nodes[i];
		bool is_conditional = node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;

		count += is_counted && node->type == CU_GRAPH_NODE_TYPE_KERNEL;
		if (node->run_count)
			count +=
				node->run_count * count_kernels(node->children[node->running_child],
								is_counted || is_conditional);
	}
	return count;
}

static void graph_exec_run(CUgraph graph, const struct launch *launch, uint64_t start_ns,
			   struct nesting nesting);

static void run_child(CUgraphNode node, const struct launch *launch, uint64_t start_ns,
		      struct nesting nesting)
{
	nesting.is_in_body |= node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
	for (uint32_t i = 0; i < node->run_count; i++) {
		graph_exec_run(node->children[node->running_child], launch,
			       start_ns + i * node->run_period_ns, nesting);
		nesting.is_repeated = true;
	}
}

/* See struct CUgraphExec_st for the parts that depend on the instantiation. */
static struct sim_part part_of(CUgraphNode node, const struct launch *launch,
			       struct nesting nesting)
{
	bool is_instrumented = launch->exec->has_node_records;

	return (struct sim_part){
		.node_id = node->id,
		.graph_id = launch->exec->graph->id,
		.is_by_device = nesting.is_in_body && is_instrumented,
		.is_unrecorded =
			launch->is_recorded_whole || (nesting.is_repeated && !is_instrumented),
	};
}

static void run_node(CUgraphNode node, const struct launch *launch, uint64_t start_ns,
		     struct nesting nesting)
{
	struct sim_part part = part_of(node, launch, nesting);
	struct sim_place place = sim_stream_place(launch->stream);
	struct sim_span span = {start_ns + node->span.start_ns, start_ns + node->span.end_ns};

	if (launch->is_faulty)
		span = (struct sim_span){0, 0};
	if (nesting.is_in_body)
		place.stream_id = launch->exec->stream_id;
	if (sim_truth_is_on() && !nesting.is_repeated)
		sim_truth_maker(node->id, node->maker);
	if (sim_truth_is_on() && part.is_by_device)
		sim_truth_by_device(node->id, span.start_ns);
	switch (node->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		sim_kernel_report(&node->shape, place, span, &part);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
		sim_transfer_run(&node->transfer);
		sim_transfer_report(&node->transfer, place, span, &part);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		sim_host_enqueue(launch->stream, node->host_call.function,
				 node->host_call.user_data, span.start_ns);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		run_child(node, launch, start_ns + node->span.start_ns, nesting);
		break;
	case CU_GRAPH_NODE_TYPE_EMPTY:
		break;
	}
}

static void graph_exec_run(CUgraph graph, const struct launch *launch, uint64_t start_ns,
			   struct nesting nesting)
{
	for (size_t i = 0; i < graph->node_count; i++)
		run_node(graph->nodes[i], launch, start_ns, nesting);
}

/*
 * CUPTI 12.9 and 13.0.0 fail when they allocate one more buffer in device memory for the records of
 * graphs that several threads launch.
 */
static bool fails_to_grow(const struct launch *launch)
{
	CUcontext context = launch->stream->context;
	uint64_t count = count_kernels(launch->exec->graph, true);
	uint64_t before = atomic_fetch_add(&context->graph_record_count, count);

	if (atomic_exchange(&context->graph_launcher, sim_thread()) != sim_thread() && before)
		atomic_store(&context->has_launchers, true);
	return atomic_load(&context->has_launchers) && !context->has_host_records &&
	       atomic_load(&sim_switches.fails_to_grow) &&
	       (before + count) / BUFFER_RECORDS > before / BUFFER_RECORDS &&
	       before + count >= BUFFER_RECORDS * BUFFERS_ALLOCATED;
}

/*
 * CUPTI never reuses the memory for device-side records. When it is full, the kernels that write
 * them fail, and with them the context.
 */
static CUresult failure_of(const struct launch *launch)
{
	CUcontext context = launch->stream->context;
	uint64_t count;

	if (atomic_load(&context->fault))
		return (CUresult)atomic_load(&context->fault);
	if (!launch->exec->has_node_records || launch->is_recorded_whole ||
	    !sim_activity_is_on(SIM_SWITCH_KERNEL))
		return CUDA_SUCCESS;
	count = count_kernels(launch->exec->graph, false);
	if (count && atomic_fetch_add(&context->device_record_count, count) + count >=
			     context->device_records_max)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	return fails_to_grow(launch) ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

static void report_whole(const struct launch *launch, struct sim_span span)
{
	if (!launch->is_recorded_whole && !sim_truth_is_on())
		return;
	sim_graph_deliver(&(struct sim_graph_run){
		.place = sim_stream_place(launch->stream),
		.span = launch->is_faulty ? (struct sim_span){0, 0} : span,
		.correlation_id = sim_correlation_id(),
		.graph_exec_id = launch->exec->graph->id,
		.kernel_count = count_kernels(launch->exec->graph, true),
		.is_recorded = launch->is_recorded_whole,
	});
}

/* With the executable graph's lock. */
static void launch_now(struct launch *launch)
{
	CUgraphExec exec = launch->exec;
	CUstream stream = launch->stream;
	uint64_t duration_ns = plan(exec->graph, stream);
	int failure = failure_of(launch), no_fault = 0;
	struct sim_span span;

	launch->is_faulty = failure != CUDA_SUCCESS;
	pthread_mutex_lock(&stream->lock);
	sim_raise(&stream->tail_ns, atomic_load(&exec->tail_ns));
	pthread_mutex_unlock(&stream->lock);
	span = sim_stream_enqueue(stream, SIM_LAUNCH_LATENCY_NS,
				  launch->is_faulty ? 0 : duration_ns);
	sim_raise(&exec->tail_ns, span.end_ns);
	if (atomic_compare_exchange_strong(&stream->context->fault, &no_fault, failure) && failure)
		atomic_store(&stream->context->fault_ns, span.start_ns);
	graph_exec_run(exec->graph, launch, span.start_ns, (struct nesting){false, false});
	report_whole(launch, span);
}

/* A node that runs a clone of the graph. Valid as long as *child. */
static struct CUgraphNode_st child_node(CUgraph *child)
{
	return (struct CUgraphNode_st){
		.type = CU_GRAPH_NODE_TYPE_GRAPH,
		.children = child,
		.child_count = 1,
		.run_count = 1,
	};
}

CUresult sim_graph_launch(CUgraphExec exec, CUstream handle)
{
	CUresult error;
	CUstream stream = sim_stream_resolve(handle, &error);
	struct launch launch = {exec, stream, sim_activity_is_on(SIM_SWITCH_GRAPH), false};
	struct CUgraphNode_st node;

	if (sim_truth_is_on())
		sim_truth_launch(sim_thread()->call);
	if (!is_exec(exec))
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream)
		return error;
	if (atomic_load(&stream->capture)) {
		node = child_node(&exec->graph);
		return sim_capture(stream, &node);
	}
	if (launch.is_recorded_whole && !exec->has_whole_record)
		sim_crash("GRAPH_TRACE is enabled at the launch of a graph, but was not when the "
			  "graph "
			  "was instantiated");
	if (atomic_load(&sim_switches.crashes_launches) &&
	    atomic_load(&stream->context->has_launchers))
		sim_crash("kernel records were disabled after a graph was recorded as a whole");
	if (launch.is_recorded_whole)
		atomic_store(&sim_switches.has_launched_whole, true);
	if (!exec->has_node_records)
		sim_hold_kinds();
	sim_deferred_wait(stream);
	sim_host_drain(stream, stream->context);
	pthread_mutex_lock(&exec->lock);
	launch_now(&launch);
	pthread_mutex_unlock(&exec->lock);
	return CUDA_SUCCESS;
}

/*
 * The parameters of a node, with all its other members cleared. A program gives them when it adds a
 * node, and when it changes one in a graph or in an executable graph.
 */
struct content {
	CUresult error; /* not CUDA_SUCCESS: the parameters are wrong, and the node is not set */
	struct CUgraphNode_st node;
};

static struct content wrong(CUresult error)
{
	return (struct content){.error = error};
}

static struct content kernel_content(const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct content content = {.node.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!params)
		return wrong(CUDA_ERROR_INVALID_VALUE);
	content.node.shape = (struct sim_shape){
		.function = params->func ? params->func : (CUfunction)params->kern,
		.grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
		.block = {params->blockDimX, params->blockDimY, params->blockDimZ},
		.dynamic_shared_bytes = params->sharedMemBytes,
	};
	content.error = sim_shape_check(&content.node.shape);
	return content;
}

/* Only one row: arrays and pitched copies are not simulated. */
static struct content copy_content(const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct content content = {.node.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	bool from_host, to_host;
	const char *source;
	char *destination;

	if (!copy || !sim_context_is_valid(context))
		return wrong(CUDA_ERROR_INVALID_VALUE);
	if (copy->Height > 1 || copy->Depth > 1 || copy->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
	    copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return wrong(CUDA_ERROR_NOT_SUPPORTED);
	from_host = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
	to_host = copy->dstMemoryType == CU_MEMORYTYPE_HOST;
	source = from_host ? copy->srcHost : (void *)(uintptr_t)copy->srcDevice;
	destination = to_host ? copy->dstHost : (void *)(uintptr_t)copy->dstDevice;
	if (!source || !destination)
		return wrong(CUDA_ERROR_INVALID_VALUE);
	content.node.transfer = (struct sim_transfer){
		.destination = destination + copy->dstXInBytes,
		.source = source + copy->srcXInBytes,
		.bytes = copy->WidthInBytes,
		.copy_kind = sim_copy_kind(from_host, to_host),
		.is_async = true,
	};
	return content;
}

static struct content set_content(const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
	struct content content = {.node.type = CU_GRAPH_NODE_TYPE_MEMSET};

	if (!set || !set->dst || !sim_context_is_valid(context) ||
	    (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4))
		return wrong(CUDA_ERROR_INVALID_VALUE);
	if (set->height > 1)
		return wrong(CUDA_ERROR_NOT_SUPPORTED);
	content.node.transfer = (struct sim_transfer){
		.destination = (void *)(uintptr_t)set->dst,
		.bytes = set->width * set->elementSize,
		.value = set->value,
		.element_bytes = set->elementSize,
		.is_async = true,
	};
	return content;
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

static CUresult set_in_graph(CUgraphNode node, struct content content)
{
	CUresult result = content.error ? content.error : set_node(node, &content.node);

	if (!result && sim_truth_is_on())
		sim_truth_node_set(node->id, 0);
	return result;
}

/* The node of the graph may also be one of a child graph. */
static CUresult set_in_exec(CUgraphExec exec, CUgraphNode node, struct content content)
{
	CUresult result = content.error;

	if (result)
		return result;
	if (!is_exec(exec) || !sim_graph_node_is_valid(node))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&exec->lock);
	result = set_node(find_clone(exec->graph, node), &content.node);
	pthread_mutex_unlock(&exec->lock);
	if (!result && sim_truth_is_on())
		sim_truth_node_set(node->id, sim_graph_exec_id(exec));
	return result;
}

CUresult sim_graph_kernel_node_set_params(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	return set_in_graph(node, kernel_content(params));
}

/* Uses the current context. */
CUresult sim_graph_memcpy_node_set_params(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	return set_in_graph(node, copy_content(copy, sim_context_current()));
}

CUresult sim_graph_memset_node_set_params(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *set)
{
	return set_in_graph(node, set_content(set, sim_context_current()));
}

CUresult sim_graph_exec_kernel_node_set_params(CUgraphExec exec, CUgraphNode node,
					       const CUDA_KERNEL_NODE_PARAMS *params)
{
	return set_in_exec(exec, node, kernel_content(params));
}

CUresult sim_graph_exec_memcpy_node_set_params(CUgraphExec exec, CUgraphNode node,
					       const CUDA_MEMCPY3D *copy, CUcontext context)
{
	return set_in_exec(exec, node, copy_content(copy, context));
}

CUresult sim_graph_exec_memset_node_set_params(CUgraphExec exec, CUgraphNode node,
					       const CUDA_MEMSET_NODE_PARAMS *set,
					       CUcontext context)
{
	return set_in_exec(exec, node, set_content(set, context));
}

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

static CUresult graph_exec_add(CUgraph graph, struct content content,
			       const CUgraphNode *dependencies, size_t dependency_count,
			       CUgraphNode *out)
{
	if (content.error)
		return content.error;
	return sim_graph_add(graph, &content.node, dependencies, dependency_count, out);
}

CUresult sim_graph_add_kernel_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				   size_t dependency_count, const CUDA_KERNEL_NODE_PARAMS *params)
{
	return graph_exec_add(graph, kernel_content(params), dependencies, dependency_count, out);
}

CUresult sim_graph_add_memcpy_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				   size_t dependency_count, const CUDA_MEMCPY3D *copy,
				   CUcontext context)
{
	return graph_exec_add(graph, copy_content(copy, context), dependencies, dependency_count,
			      out);
}

CUresult sim_graph_add_memset_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				   size_t dependency_count, const CUDA_MEMSET_NODE_PARAMS *set,
				   CUcontext context)
{
	return graph_exec_add(graph, set_content(set, context), dependencies, dependency_count,
			      out);
}

CUresult sim_graph_add_host_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				 size_t dependency_count, const CUDA_HOST_NODE_PARAMS *params)
{
	struct content content = {.node.type = CU_GRAPH_NODE_TYPE_HOST};

	if (!params || !params->fn)
		return CUDA_ERROR_INVALID_VALUE;
	content.node.host_call = (struct sim_host_call){params->fn, params->userData};
	return graph_exec_add(graph, content, dependencies, dependency_count, out);
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
	const struct CUgraphNode_st content = child_node(&child);

	if (!sim_graph_is_valid(child) || child == graph)
		return CUDA_ERROR_INVALID_VALUE;
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
