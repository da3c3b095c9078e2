/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the program's threads, at the creation, change and instantiation of graphs: no lock, no
 * malloc, no output. Launches of graphs and their level of detail: cupti/graph_level.h.
 */
#include "inject/capture/graph_nodes.h"

#include "inject/capture/ring.h"
#include "inject/capture/stack_capture.h"
#include "inject/capture/torch_capture.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/cupti/graph_level.h"
#include "inject/runtime/clock.h"

/*
 * If CUPTI has no node ids, the work of a graph is attributed to its launch; that is no loss. A
 * failure to get an id is one.
 */
static bool node_id_of(struct thread_buffer *tb, void *node, uint64_t *id)
{
	if (!cupti.cuptiGetGraphNodeId)
		return false;
	if (cupti.cuptiGetGraphNodeId(node, id) == XT_CUPTI_SUCCESS)
		return true;
	thread_buffer_count_up(tb, XT_RING_NODES_SEEN);
	thread_buffer_count_up(tb, XT_RING_NODES_LOST);
	return false;
}

/* Completes the record's head and time. The node's stack slot may be marked. */
static void commit_node(struct thread_buffer *tb, const struct xt_record_node *node)
{
	struct xt_autograd_state autograd;
	bool has_autograd = stack_is_in_torch(node->stack_slot) && torch_capture(tb, &autograd);
	uint32_t bytes = has_autograd ? sizeof(struct xt_record_autograd_node) : sizeof(*node);
	struct xt_record_node *record;

	thread_buffer_count_up(tb, XT_RING_NODES_SEEN);
	record = ring_reserve_or_wait(tb, bytes);
	if (!record) {
		thread_buffer_count_up(tb, XT_RING_NODES_LOST);
		return;
	}
	*record = *node;
	record->stack_slot = stack_unmarked(node->stack_slot);
	record->head.type = XT_RECORD_NODE;
	record->head.bytes = (uint16_t)bytes;
	record->time_ns = monotonic_ns();
	if (has_autograd)
		((struct xt_record_autograd_node *)(void *)record)->autograd = autograd;
	ring_commit(tb, bytes);
}

/* Some nodes start and are never created; overwrite the oldest. */
static void note_starting(struct thread_buffer *tb, const struct cupti_graph_data *graph)
{
	struct starting_node *place = &tb->starting[0];

	for (uint32_t i = 1; i < THREAD_BUFFER_STARTING_NODES; i++)
		if (tb->starting[i].order < place->order)
			place = &tb->starting[i];
	*place = (struct starting_node){
		.node = graph->node, .order = ++tb->starting_count, .type = graph->node_type};
}

/* CUPTI reports a clone first as created, then as cloned. */
static uint32_t node_type(struct thread_buffer *tb, const struct cupti_graph_data *graph)
{
	for (uint32_t i = 0; i < THREAD_BUFFER_STARTING_NODES; i++) {
		if (!tb->starting[i].order || tb->starting[i].node != graph->node)
			continue;
		tb->made = tb->starting[i];
		tb->starting[i].order = 0;
		return tb->made.type;
	}
	return tb->made.node == graph->node ? tb->made.type : graph->node_type;
}

void graph_node(struct thread_buffer *tb, uint32_t cbid, const struct cupti_resource_data *data,
		const struct caller_regs *regs)
{
	const struct cupti_graph_data *graph = data->descriptor;
	bool cloned = cbid == XT_CUPTI_RESOURCE_GRAPHNODE_CLONED;
	struct xt_record_node node = {.node_type = node_type(tb, graph)};

	if (cbid == XT_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING) {
		note_starting(tb, graph);
		return;
	}
	if (!node_id_of(tb, graph->node, &node.node_id) ||
	    (cloned && !node_id_of(tb, graph->original_node, &node.origin_id)))
		return;
	node.stack_slot = cloned ? XT_STACK_SLOT_NONE : capture_marked_stack(tb, regs);
	commit_node(tb, &node);
	tb->made_id = node.node_id;
	if (tb->ring->open_count)
		tb->ring->open_calls[tb->ring->open_count - 1].slot_epoch |= CALL_MADE_NODE;
}

static uint64_t graph_id_of(void *graph)
{
	uint32_t id = 0;

	if (!cupti.cuptiGetGraphId || cupti.cuptiGetGraphId(graph, &id) != XT_CUPTI_SUCCESS || !id)
		return XT_GRAPH_ANY; /* changed to an unknown graph */
	return id;
}

void graph_node_set(struct thread_buffer *tb, uint32_t use, const struct cupti_callback_data *data,
		    const struct caller_regs *regs)
{
	void *const *arguments = data->function_params;
	struct xt_record_node node = {.node_type = XT_NODE_CHANGED};

	if (!arguments || !data->return_value || *(const int32_t *)data->return_value)
		return;
	if (use & (API_SETS_EXEC_NODE | API_UPDATES_EXEC) &&
	    (!cupti.cuptiGetGraphExecId ||
	     cupti.cuptiGetGraphExecId(arguments[0], &node.graph_exec) != XT_CUPTI_SUCCESS ||
	     !node.graph_exec))
		return;
	if (use & API_UPDATES_EXEC)
		node.origin_id = graph_id_of(arguments[1]);
	else if (!node_id_of(tb, arguments[use & API_SETS_EXEC_NODE ? 1 : 0], &node.node_id))
		return;
	if (use & API_SETS_EXEC_CHILD)
		node.origin_id = graph_id_of(arguments[2]);
	node.stack_slot = capture_stack(tb, regs);
	commit_node(tb, &node);
}

#define NODE_PARAMS_KERNEL 0 /* CUgraphNodeType */

/* The parts of CUDA_KERNEL_NODE_PARAMS and CUgraphNodeParams that name the kernel (cuda.h). */
struct kernel_node_params {
	void *function;
	uint32_t grid_block_shared[7];
	uint32_t padding0;
	void *arguments, *extra;
	void *kernel; /* only if function is NULL; the first version of the struct lacks it */
};
struct node_params {
	uint32_t type;
	uint32_t reserved0[3];
	struct kernel_node_params kernel;
};

/* The kernel that a call adds to a graph; NULL: it adds another node. */
static const struct kernel_node_params *kernel_of_node(uint32_t use, void *const *arguments)
{
	const struct node_params *node;

	if (use & API_ADDS_KERNEL_NODE)
		return arguments[4];
	node = arguments[use & API_ADDS_NODE_V2 ? 5 : 4];
	return node && node->type == NODE_PARAMS_KERNEL ? &node->kernel : NULL;
}

static void put_node_name(struct thread_buffer *tb, uint64_t node_id, const char *name)
{
	struct xt_record_node_name *record = ring_reserve_or_wait(tb, sizeof(*record));

	if (!record)
		return; /* the name is unknown; the node is in the log */
	record->head.type = XT_RECORD_NODE_NAME;
	record->head.bytes = sizeof(*record);
	record->node_id = node_id;
	record->time_ns = monotonic_ns();
	record->name = (uintptr_t)name;
	ring_commit(tb, sizeof(*record));
}

void graph_node_captured(struct thread_buffer *tb, const struct cupti_callback_data *data)
{
	if (data->symbol_name && tb->made_id)
		put_node_name(tb, tb->made_id, data->symbol_name);
}

void graph_node_added(struct thread_buffer *tb, uint32_t use,
		      const struct cupti_callback_data *data)
{
	void *const *arguments = data->function_params;
	const struct kernel_node_params *kernel;
	const char *name = NULL;
	uint64_t node_id;

	if (!arguments || !data->return_value || *(const int32_t *)data->return_value)
		return;
	kernel = kernel_of_node(use, arguments);
	/* The driver reads a name from memory, without a lock. CUPTI permits calls in callbacks. */
	if (!kernel || !cupti.cuFuncGetName || !kernel->function ||
	    cupti.cuFuncGetName(&name, kernel->function) || !name ||
	    !node_id_of(tb, *(void *const *)arguments[0], &node_id))
		return;
	put_node_name(tb, node_id, name);
}

void graph_instantiation(struct thread_buffer *tb, const struct cupti_callback_data *data)
{
	void *const *arguments = data->function_params;
	bool has_failed = !arguments || !data->return_value || *(const int32_t *)data->return_value;

	if (data->site == XT_CUPTI_API_ENTER) {
		/* longjmp() may have left an earlier instantiation. */
		graph_level_leave(tb->instantiation_hold);
		tb->instantiation_hold = GRAPH_HOLD_NONE;
		tb->instantiation_epoch = graph_level_epoch();
		tb->is_instantiating = true;
		return;
	}
	tb->is_instantiating = false;
	if (!has_failed)
		graph_level_note_instantiated(*(void *const *)arguments[0],
					      tb->instantiation_hold != GRAPH_HOLD_NONE);
	graph_level_leave(tb->instantiation_hold);
	tb->instantiation_hold = GRAPH_HOLD_NONE;
}

/* Without a thread buffer, an instantiation cannot be told from the creation of a node. */
void graph_node_starts(struct thread_buffer *tb, const struct cupti_resource_data *data)
{
	const struct cupti_graph_data *graph = data->descriptor;

	if (graph->node_type == XT_CUPTI_NODE_MEMCPY)
		unsafe_kinds_note_graph_copy();
	if (graph->node_type != XT_CUPTI_NODE_CONDITIONAL)
		return;
	if (!tb)
		graph_level_give_up_later();
	/* In another epoch, the EXIT of the instantiation is missing. */
	if (!tb || !tb->is_instantiating || tb->instantiation_hold != GRAPH_HOLD_NONE ||
	    tb->instantiation_epoch != graph_level_epoch())
		return;
	tb->instantiation_hold = graph_level_enter_whole();
}
