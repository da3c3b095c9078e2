/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture: work enqueued on a captured stream becomes nodes of a graph.
 *
 * A session is one capture. Each participating stream has a branch, which stores the nodes that the
 * next node will depend on. If one branch records an event and another stream waits for it, that
 * stream joins the session. One lock protects everything, because captures are rare.
 */
#include <stdlib.h>
#include <string.h>

#include "simgpu/graph.h"

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

static bool has_tip(const struct sim_branch *branch, CUgraphNode node)
{
	for (size_t i = 0; i < branch->tip_count; i++)
		if (branch->tips[i] == node)
			return true;
	return false;
}

static CUresult add_tips(struct sim_branch *branch, const CUgraphNode *nodes, size_t count)
{
	CUgraphNode *tips = realloc(branch->tips, (branch->tip_count + count + 1) * sizeof(*tips));

	if (!tips)
		return CUDA_ERROR_OUT_OF_MEMORY;
	branch->tips = tips;
	for (size_t i = 0; i < count; i++)
		if (!has_tip(branch, nodes[i]))
			tips[branch->tip_count++] = nodes[i];
	return CUDA_SUCCESS;
}

static CUresult add_node(CUstream stream, const struct CUgraphNode_st *content)
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

CUresult sim_capture_kernel(CUstream stream, const struct sim_shape *shape)
{
	const struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .shape = *shape};

	return add_node(stream, &content);
}

CUresult sim_capture_transfer(CUstream stream, const struct sim_transfer *transfer)
{
	const struct CUgraphNode_st content = {
		.type = transfer->source ? CU_GRAPH_NODE_TYPE_MEMCPY : CU_GRAPH_NODE_TYPE_MEMSET,
		.transfer = *transfer,
	};

	return add_node(stream, &content);
}

CUresult sim_capture_host(CUstream stream, CUhostFn function, void *user_data)
{
	const struct CUgraphNode_st content = {
		.type = CU_GRAPH_NODE_TYPE_HOST,
		.host_call = {function, user_data},
	};

	return add_node(stream, &content);
}

CUresult sim_capture_graph(CUstream stream, CUgraph child)
{
	const struct CUgraphNode_st content = {
		.type = CU_GRAPH_NODE_TYPE_GRAPH,
		.children = &child,
		.child_count = 1,
		.run_count = 1,
	};

	if (sim_graph_is_conditional(child))
		return CUDA_ERROR_NOT_SUPPORTED;
	return add_node(stream, &content);
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
		bool has_dependent = has_tip(origin, graph->nodes[i]);

		for (size_t j = i + 1; j < graph->node_count && !has_dependent; j++)
			for (size_t k = 0; k < graph->nodes[j]->dependency_count; k++)
				has_dependent |=
					graph->nodes[j]->dependencies[k] == graph->nodes[i];
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
