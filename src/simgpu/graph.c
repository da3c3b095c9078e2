/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds graphs node by node, copies them, and captures streams into them. The client is notified
 * of every graph and node that is created, cloned or destroyed, in the order of a real driver. A
 * cloned node is announced twice: first as created, then as cloned.
 */
#include "simgpu/graph.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t ids_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t graph_count; /* both under ids_lock */
static uint32_t free_ids[64];
static size_t free_id_count; /* of destroyed graphs, if ids are reused */

static uint32_t take_id(bool may_be_reused)
{
	uint32_t id;

	pthread_mutex_lock(&ids_lock);
	id = free_id_count && may_be_reused ? free_ids[--free_id_count] : ++graph_count;
	pthread_mutex_unlock(&ids_lock);
	return id;
}

static void give_back_id(uint32_t id)
{
	if (!sim_config()->reuses_ids)
		return;
	pthread_mutex_lock(&ids_lock);
	if (free_id_count < sizeof(free_ids) / sizeof(free_ids[0]))
		free_ids[free_id_count++] = id;
	pthread_mutex_unlock(&ids_lock);
}

bool sim_graph_is_valid(CUgraph graph)
{
	return graph && graph->magic == SIM_MAGIC_GRAPH;
}

bool sim_graph_node_is_valid(CUgraphNode node)
{
	return node && node->magic == SIM_MAGIC_NODE;
}

uint64_t sim_graph_node_id(CUgraphNode node)
{
	return sim_graph_node_is_valid(node) ? node->id : 0;
}

uint32_t sim_graph_id(CUgraph graph)
{
	return sim_graph_is_valid(graph) ? graph->id : 0;
}

static void graph_notify(uint32_t cbid, CUgraph graph)
{
	struct cupti_graph_data data = {.graph = graph};

	sim_resource_notify(cbid, sim_context_current(), NULL, &data);
}

/* The type is given when the creation starts, and is 0 later, as with a real CUPTI. */
static void node_notify(uint32_t cbid, CUgraphNode node, CUgraphNode original,
			CUgraphNode dependency)
{
	bool tells_type = cbid == XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING;
	struct cupti_graph_data data = {
		.graph = node->graph,
		.original_graph = original ? original->graph : NULL,
		.node = node,
		.original_node = original,
		.node_type = tells_type ? node->type : 0,
		.dependency = dependency,
	};

	sim_resource_notify(cbid, sim_context_current(), NULL, &data);
}

static void note_node(CUgraphNode node, CUgraphNode original)
{
	if (sim_truth_is_on())
		sim_truth_node(node->id, original ? original->id : 0, node->type);
}

CUgraph sim_graph_make(void)
{
	CUgraph graph = calloc(1, sizeof(*graph));

	if (!graph)
		return NULL;
	graph->magic = SIM_MAGIC_GRAPH;
	graph->id = take_id(true);
	graph_notify(XT_CUPTI_RESOURCE_GRAPH_CREATED, graph);
	return graph;
}

static void node_free(CUgraphNode node)
{
	for (uint32_t i = 0; i < node->child_count; i++)
		sim_graph_free(node->children[i]);
	node->magic = SIM_MAGIC_DEAD;
	free(node->children);
	free(node->dependencies);
	free(node);
}

void sim_graph_free(CUgraph graph)
{
	if (!graph)
		return;
	graph_notify(XT_CUPTI_RESOURCE_GRAPH_DESTROY_STARTING, graph);
	for (size_t i = 0; i < graph->node_count; i++) {
		node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING, graph->nodes[i], NULL,
			    NULL);
		node_free(graph->nodes[i]);
	}
	graph->magic = SIM_MAGIC_DEAD;
	give_back_id(graph->id);
	free(graph->nodes);
	free(graph);
}

/* A node without dependencies and children, in the graph's list, and not announced yet. */
static CUgraphNode node_alloc(CUgraph graph, const struct CUgraphNode_st *content)
{
	CUgraphNode node;

	if (graph->node_count == graph->node_capacity) {
		size_t capacity = graph->node_capacity ? 2 * graph->node_capacity : 16;
		CUgraphNode *nodes = realloc(graph->nodes, capacity * sizeof(CUgraphNode));

		if (!nodes)
			return NULL;
		graph->nodes = nodes;
		graph->node_capacity = capacity;
	}
	node = malloc(sizeof(*node));
	if (!node)
		return NULL;
	*node = *content;
	node->magic = SIM_MAGIC_NODE;
	node->graph = graph;
	node->dependencies = NULL;
	node->dependency_count = 0;
	node->children = NULL;
	node->child_count = 0;
	node->index = graph->node_count;
	node->id = (uint64_t)graph->id << 32 | node->index;
	graph->nodes[graph->node_count++] = node;
	return node;
}

static bool has_node(CUgraphNode *nodes, size_t count, CUgraphNode node)
{
	for (size_t i = 0; i < count; i++)
		if (nodes[i] == node)
			return true;
	return false;
}

CUresult sim_graph_depend(CUgraphNode node, const CUgraphNode *dependencies, size_t count)
{
	size_t total = node->dependency_count + count;
	CUgraphNode *grown;

	for (size_t i = 0; i < count; i++)
		if (!sim_graph_node_is_valid(dependencies[i]) ||
		    dependencies[i]->graph != node->graph || dependencies[i] == node)
			return CUDA_ERROR_INVALID_VALUE;
	if (!count)
		return CUDA_SUCCESS;
	grown = realloc(node->dependencies, total * sizeof(CUgraphNode));
	if (!grown)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->dependencies = grown;
	for (size_t i = 0; i < count; i++) {
		if (has_node(node->dependencies, node->dependency_count, dependencies[i]))
			continue;
		node->dependencies[node->dependency_count++] = dependencies[i];
		node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED, node, NULL,
			    dependencies[i]);
	}
	return CUDA_SUCCESS;
}

struct sim_maker sim_graph_maker(void)
{
	return (struct sim_maker){sim_thread()->tid, sim_thread()->call->number, false};
}

static bool make_children(CUgraphNode node, const struct CUgraphNode_st *content)
{
	node->children = calloc(content->child_count + 1, sizeof(CUgraph));
	if (!node->children)
		return false;
	while (node->child_count < content->child_count) {
		CUgraph child = content->children
					? sim_graph_clone(content->children[node->child_count])
					: sim_graph_make();

		if (!child)
			return false;
		node->children[node->child_count++] = child;
	}
	return true;
}

CUresult sim_graph_add(CUgraph graph, const struct CUgraphNode_st *content,
		       const CUgraphNode *dependencies, size_t dependency_count, CUgraphNode *out)
{
	CUresult result;
	CUgraphNode node;

	if (!sim_graph_is_valid(graph) || !out || (dependency_count && !dependencies))
		return CUDA_ERROR_INVALID_VALUE;
	if (content->type == CU_GRAPH_NODE_TYPE_GRAPH &&
	    sim_graph_is_conditional(content->children[0]))
		return CUDA_ERROR_NOT_SUPPORTED;
	node = node_alloc(graph, content);
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING, node, NULL, NULL);
	node->maker = sim_graph_maker();
	result = make_children(node, content)
			 ? sim_graph_depend(node, dependencies, dependency_count)
			 : CUDA_ERROR_OUT_OF_MEMORY;
	if (result) {
		graph->node_count--;
		node_free(node);
		return result;
	}
	note_node(node, NULL);
	node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_CREATED, node, NULL, NULL);
	*out = node;
	return CUDA_SUCCESS;
}

/* The clone of a node in `clone`, which was made from `original`: it has the same index. */
static CUgraphNode counterpart(CUgraph original, CUgraph clone, CUgraphNode node)
{
	for (size_t i = 0; i < original->node_count; i++)
		if (original->nodes[i] == node)
			return clone->nodes[i];
	return NULL;
}

static bool clone_dependencies(CUgraph original, CUgraph clone, size_t index)
{
	CUgraphNode from = original->nodes[index];
	CUgraphNode to = clone->nodes[index];

	to->dependencies = calloc(from->dependency_count + 1, sizeof(CUgraphNode));
	if (!to->dependencies)
		return false;
	for (size_t i = 0; i < from->dependency_count; i++) {
		to->dependencies[i] = counterpart(original, clone, from->dependencies[i]);
		node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED, to, NULL,
			    to->dependencies[i]);
	}
	to->dependency_count = from->dependency_count;
	return true;
}

static bool clone_node(CUgraphNode from, CUgraph clone)
{
	CUgraphNode to = node_alloc(clone, from);

	if (!to)
		return false;
	to->original = from;
	node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING, to, NULL, NULL);
	if (!make_children(to, from))
		return false;
	note_node(to, from);
	node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_CREATED, to, NULL, NULL);
	node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_CLONED, to, from, NULL);
	return true;
}

CUgraph sim_graph_clone(CUgraph original)
{
	CUgraph clone = sim_graph_make();

	if (!clone)
		return NULL;
	for (size_t i = 0; i < original->node_count; i++)
		if (!clone_node(original->nodes[i], clone))
			goto fail;
	for (size_t i = 0; i < original->node_count; i++)
		if (!clone_dependencies(original, clone, i))
			goto fail;
	return clone;
fail:
	sim_graph_free(clone);
	return NULL;
}

bool sim_graph_is_conditional(CUgraph graph)
{
	for (size_t i = 0; i < graph->node_count; i++)
		if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			return true;
	return false;
}

CUgraphNode sim_graph_node_by_index(CUgraph graph, size_t index)
{
	for (size_t i = 0; i < graph->node_count; i++)
		if (graph->nodes[i]->index == index)
			return graph->nodes[i];
	return NULL;
}

/*
 * Gives the nodes of child graphs and bodies new ids in the executable graph, and announces that
 * the child graphs are destroyed. The nodes themselves are not announced, as in a real driver. The
 * nodes of a child have successive ids. Those of its own children follow.
 */
void sim_graph_inline(CUgraph graph, CUgraph child, uint64_t *next_index)
{
	for (size_t i = 0; i < child->node_count && child != graph; i++)
		sim_graph_node_by_index(child, i)->id = (uint64_t)graph->id << 32 | (*next_index)++;
	for (size_t i = 0; i < child->node_count; i++) {
		CUgraphNode node = sim_graph_node_by_index(child, i);

		if (node->child_count && child == graph)
			node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING, node, NULL, NULL);
		for (uint32_t j = 0; j < node->child_count; j++) {
			sim_graph_inline(graph, node->children[j], next_index);
			graph_notify(XT_CUPTI_RESOURCE_GRAPH_DESTROY_STARTING, node->children[j]);
		}
	}
}

void sim_graph_announce_hidden(CUgraph graph)
{
	uint64_t id = take_id(false);

	for (size_t i = 0; i < graph->node_count; i++) {
		struct CUgraphNode_st hidden = *graph->nodes[i];

		hidden.id = id << 32 | hidden.index;
		node_notify(XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING, &hidden, NULL, NULL);
		for (uint32_t j = 0; j < hidden.child_count; j++)
			sim_graph_announce_hidden(hidden.children[j]);
	}
}

static bool is_ready(CUgraph graph, size_t placed_count, CUgraphNode node)
{
	for (size_t i = 0; i < node->dependency_count; i++)
		if (!has_node(graph->nodes, placed_count, node->dependencies[i]))
			return false;
	return true;
}

/*
 * True if the order of creation is a valid order. Dependencies that were added later may break it.
 */
static bool is_sorted(CUgraph graph)
{
	for (size_t i = 0; i < graph->node_count; i++)
		for (size_t j = 0; j < graph->nodes[i]->dependency_count; j++)
			if (graph->nodes[i]->dependencies[j]->index > graph->nodes[i]->index)
				return false;
	return true;
}

bool sim_graph_sort(CUgraph graph)
{
	bool is_in_order = is_sorted(graph);

	for (size_t placed = 0; placed < graph->node_count && !is_in_order; placed++) {
		size_t next = placed;
		CUgraphNode node;

		while (next < graph->node_count && !is_ready(graph, placed, graph->nodes[next]))
			next++;
		if (next == graph->node_count)
			return false;
		node = graph->nodes[next];
		graph->nodes[next] = graph->nodes[placed];
		graph->nodes[placed] = node;
	}
	for (size_t i = 0; i < graph->node_count; i++)
		for (uint32_t j = 0; j < graph->nodes[i]->child_count; j++)
			if (!sim_graph_sort(graph->nodes[i]->children[j]))
				return false;
	return true;
}

/*
 * Stream capture: work enqueued on a captured stream becomes nodes of a graph. A session is one
 * capture. Each participating stream has a branch, which stores the nodes that the next node will
 * depend on. If one branch records an event and another stream waits for it, that stream joins the
 * session. One lock protects everything, because captures are rare.
 */
struct session {
	uint64_t id;
	CUgraph graph;
	size_t first_node; /* of the graph that was captured; those before it existed already */
	bool is_graph_borrowed;
	bool is_invalid;
	CUstream origin;
	int tid;
	CUstreamCaptureMode mode;
	struct sim_branch *branches;
	struct session *next;
};

struct sim_branch {
	struct session *session;
	CUstream stream;
	CUgraphNode *tips; /* the dependencies of the next node */
	size_t tip_count;
	struct sim_branch *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions; /* under lock */
static uint64_t session_count;	 /* under lock */

static struct sim_branch *branch_make(struct session *session, CUstream stream)
{
	struct sim_branch *branch = calloc(1, sizeof(*branch));

	if (!branch)
		return NULL;
	branch->session = session;
	branch->stream = stream;
	branch->next = session->branches;
	session->branches = branch;
	atomic_store(&stream->capture, branch);
	return branch;
}

/* Ends the session. The caller owns its graph. */
static void session_end(struct session *session)
{
	for (struct session **place = &sessions; *place; place = &(*place)->next) {
		if (*place == session) {
			*place = session->next;
			break;
		}
	}
	while (session->branches) {
		struct sim_branch *branch = session->branches;

		session->branches = branch->next;
		atomic_store(&branch->stream->capture, NULL);
		free(branch->tips);
		free(branch);
	}
	free(session);
}

/* Ends the session, and frees its graph. */
static void session_abandon(struct session *session)
{
	if (!session->is_graph_borrowed)
		sim_graph_free(session->graph);
	session_end(session);
}

static CUresult add_tips(struct sim_branch *branch, const CUgraphNode *nodes, size_t count)
{
	CUgraphNode *tips = realloc(branch->tips, (branch->tip_count + count + 1) * sizeof(*tips));

	if (!tips)
		return CUDA_ERROR_OUT_OF_MEMORY;
	branch->tips = tips;
	for (size_t i = 0; i < count; i++)
		if (!has_node(tips, branch->tip_count, nodes[i]))
			tips[branch->tip_count++] = nodes[i];
	return CUDA_SUCCESS;
}

CUresult sim_capture(CUstream stream, const struct CUgraphNode_st *content)
{
	struct sim_branch *branch;
	CUgraphNode node;
	CUresult result;

	pthread_mutex_lock(&lock);
	branch = atomic_load(&stream->capture);
	if (!branch || branch->session->is_invalid) {
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		goto out;
	}
	result = sim_graph_add(branch->session->graph, content, branch->tips, branch->tip_count,
			       &node);
	if (result)
		goto out;
	branch->tip_count = 0;
	result = add_tips(branch, &node, 1);
out:
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult sim_capture_record(CUstream stream, CUevent event)
{
	CUresult result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	struct sim_branch *branch;

	pthread_mutex_lock(&lock);
	branch = atomic_load(&stream->capture);
	if (branch) {
		size_t bytes = branch->tip_count * sizeof(CUgraphNode);
		CUgraphNode *nodes = realloc(event->capture_nodes, bytes + sizeof(CUgraphNode));

		result = CUDA_ERROR_OUT_OF_MEMORY;
		if (nodes) {
			event->capture_nodes = nodes;
			if (bytes)
				memcpy(nodes, branch->tips, bytes);
			event->capture_node_count = branch->tip_count;
			event->capture_id = branch->session->id;
			result = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static struct session *find_session(uint64_t id)
{
	struct session *session = sessions;

	while (session && session->id != id)
		session = session->next;
	return session;
}

CUresult sim_capture_join(CUstream stream, CUevent event)
{
	struct session *session;
	struct sim_branch *branch;
	CUresult result = CUDA_ERROR_CAPTURED_EVENT;

	pthread_mutex_lock(&lock);
	session = find_session(event->capture_id);
	if (!session)
		goto out;
	branch = atomic_load(&stream->capture);
	if (branch && branch->session != session) {
		result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
		goto out;
	}
	if (!branch)
		branch = branch_make(session, stream);
	result = branch ? add_tips(branch, event->capture_nodes, event->capture_node_count)
			: CUDA_ERROR_OUT_OF_MEMORY;
out:
	pthread_mutex_unlock(&lock);
	return result;
}

/* Adds to a graph, after these nodes, or to a new one if it is NULL. */
static CUresult begin_capture(CUstream handle, CUgraph graph, const CUgraphNode *dependencies,
			      size_t dependency_count, CUstreamCaptureMode mode)
{
	CUresult result;
	CUstream stream = sim_stream_resolve(handle, &result);
	struct session *session;

	if (!stream)
		return result;
	if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (atomic_load(&stream->capture))
		return CUDA_ERROR_ILLEGAL_STATE;
	session = calloc(1, sizeof(*session));
	if (!session)
		return CUDA_ERROR_OUT_OF_MEMORY;
	session->origin = stream;
	session->tid = sim_thread()->tid;
	session->mode = mode;
	session->is_graph_borrowed = graph != NULL;
	session->graph = graph ? graph : sim_graph_make();
	session->first_node = graph ? graph->node_count : 0;
	pthread_mutex_lock(&lock);
	session->id = ++session_count;
	session->next = sessions;
	sessions = session;
	if (!session->graph || !branch_make(session, stream) ||
	    add_tips(session->branches, dependencies, dependency_count)) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
		session_abandon(session);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult sim_stream_begin_capture(CUstream stream, CUstreamCaptureMode mode)
{
	return begin_capture(stream, NULL, NULL, 0, mode);
}

CUresult sim_stream_begin_capture_to_graph(CUstream stream, CUgraph graph,
					   const CUgraphNode *dependencies,
					   const CUgraphEdgeData *edges, size_t dependency_count,
					   CUstreamCaptureMode mode)
{
	(void)edges;
	if (!sim_graph_is_valid(graph) || (dependency_count && !dependencies))
		return CUDA_ERROR_INVALID_VALUE;
	return begin_capture(stream, graph, dependencies, dependency_count, mode);
}

/* True if the origin's branch depends on every captured node, directly or not. */
static bool is_joined(const struct session *session)
{
	const struct sim_branch *origin = atomic_load(&session->origin->capture);
	const CUgraph graph = session->graph;

	for (size_t i = session->first_node; i < graph->node_count; i++) {
		CUgraphNode node = graph->nodes[i];
		bool has_dependent = has_node(origin->tips, origin->tip_count, node);

		for (size_t j = i + 1; j < graph->node_count && !has_dependent; j++)
			has_dependent = has_node(graph->nodes[j]->dependencies,
						 graph->nodes[j]->dependency_count, node);
		if (!has_dependent)
			return false;
	}
	return true;
}

CUresult sim_stream_end_capture(CUstream handle, CUgraph *out)
{
	CUresult result;
	CUstream stream = sim_stream_resolve(handle, &result);
	struct sim_branch *branch;
	struct session *session;

	if (!stream)
		return result;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	pthread_mutex_lock(&lock);
	branch = atomic_load(&stream->capture);
	session = branch ? branch->session : NULL;
	if (!session) {
		result = CUDA_ERROR_ILLEGAL_STATE;
	} else if (session->origin != stream) {
		result = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
		session->is_invalid = true;
	} else if (session->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		   session->tid != sim_thread()->tid) {
		result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	} else if (session->is_invalid || !is_joined(session)) {
		result = session->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
					     : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		session_abandon(session);
	} else {
		*out = session->graph;
		session_end(session);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult sim_stream_is_capturing(CUstream handle, CUstreamCaptureStatus *status)
{
	CUresult error;
	CUstream stream = sim_stream_resolve(handle, &error);

	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream)
		return error;
	*status = atomic_load(&stream->capture) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
						: CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult sim_thread_exchange_stream_capture_mode(CUstreamCaptureMode *mode)
{
	struct sim_thread *thread = sim_thread();
	CUstreamCaptureMode before = thread->capture_mode;

	if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread->capture_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
