/* SPDX-License-Identifier: Apache-2.0 */
#include "log/write/event_rows.h"

void xt_put_call(struct xt_table *table, const struct xt_record_call *call, uint64_t thread_id,
		 uint64_t stack_id, uint64_t autograd_id)
{
	const struct xt_autograd_state *autograd = xt_record_call_autograd(call);

	xt_table_put(table, XT_CALL_THREAD, thread_id);
	xt_table_put(table, XT_CALL_API, call->api);
	xt_table_put(table, XT_CALL_CORRELATION, call->correlation_id);
	xt_table_put(table, XT_CALL_STACK, stack_id);
	xt_table_put(table, XT_CALL_ENTER_NS, call->enter_ns);
	xt_table_put(table, XT_CALL_DURATION_NS, call->exit_ns - call->enter_ns);
	xt_table_put(table, XT_CALL_RESULT, (uint32_t)call->result);
	xt_table_put(table, XT_CALL_ONE_IN, call->one_in);
	xt_table_put(table, XT_CALL_GRAPH_EXEC, xt_record_graph_exec(call));
	if (autograd && autograd_id) {
		xt_table_put(table, XT_CALL_SEQUENCE, autograd->sequence);
		xt_table_put(table, XT_CALL_AUTOGRAD, autograd_id);
		xt_table_put(table, XT_CALL_NODE_SEQUENCE, autograd->node_sequence);
	}
	xt_table_end_row(table);
}

void xt_put_node(struct xt_table *table, const struct xt_record_node *node, uint64_t thread_id,
		 uint64_t stack_id, uint64_t autograd_id)
{
	const struct xt_autograd_state *autograd = xt_record_node_autograd(node);

	xt_table_put(table, XT_GRAPH_NODE_ID, node->node_id);
	xt_table_put(table, XT_GRAPH_NODE_ORIGIN, node->origin_id);
	xt_table_put(table, XT_GRAPH_NODE_STACK, stack_id);
	xt_table_put(table, XT_GRAPH_NODE_TIME_NS, node->time_ns);
	xt_table_put(table, XT_GRAPH_NODE_TYPE, node->node_type);
	xt_table_put(table, XT_GRAPH_NODE_THREAD, thread_id);
	if (autograd && autograd_id) {
		xt_table_put(table, XT_GRAPH_NODE_SEQUENCE, autograd->sequence);
		xt_table_put(table, XT_GRAPH_NODE_AUTOGRAD, autograd_id);
		xt_table_put(table, XT_GRAPH_NODE_NODE_SEQUENCE, autograd->node_sequence);
	}
	xt_table_end_row(table);
}

void xt_put_node_update(struct xt_table *table, const struct xt_record_node *node,
			uint64_t thread_id, uint64_t stack_id)
{
	xt_table_put(table, XT_GRAPH_UPDATE_NODE, node->node_id);
	xt_table_put(table, XT_GRAPH_UPDATE_EXEC, node->graph_exec);
	xt_table_put(table, XT_GRAPH_UPDATE_STACK, stack_id);
	xt_table_put(table, XT_GRAPH_UPDATE_TIME_NS, node->time_ns);
	xt_table_put(table, XT_GRAPH_UPDATE_THREAD, thread_id);
	xt_table_put(table, XT_GRAPH_UPDATE_GRAPH, node->origin_id);
	xt_table_end_row(table);
}

void xt_put_node_name(struct xt_table *table, const struct xt_record_node_name *record,
		      uint64_t name_id)
{
	xt_table_put(table, XT_GRAPH_NODE_NAME_NODE, record->node_id);
	xt_table_put(table, XT_GRAPH_NODE_NAME_TIME_NS, record->time_ns);
	xt_table_put(table, XT_GRAPH_NODE_NAME_STRING, name_id);
	xt_table_end_row(table);
}

void xt_put_range(struct xt_table *table, const struct xt_record_range *range, uint64_t thread_id,
		  uint64_t stack_id, const struct xt_range_texts *texts)
{
	xt_table_put(table, XT_RANGE_OPERATION, range->operation);
	xt_table_put(table, XT_RANGE_THREAD, thread_id);
	xt_table_put(table, XT_RANGE_TIME_NS, range->time_ns);
	xt_table_put(table, XT_RANGE_DOMAIN, texts->domain);
	xt_table_put(table, XT_RANGE_TEXT, texts->text);
	xt_table_put(table, XT_RANGE_KEY, range->key);
	xt_table_put(table, XT_RANGE_STACK, stack_id);
	xt_table_put(table, XT_RANGE_CATEGORY, range->category);
	xt_table_put(table, XT_RANGE_PAYLOAD, range->payload);
	xt_table_put(table, XT_RANGE_PAYLOAD_TYPE, range->payload_type);
	xt_table_put(table, XT_RANGE_COLOR, range->color);
	xt_table_put(table, XT_RANGE_VALUES, texts->values);
	xt_table_end_row(table);
}

void xt_put_stack(struct xt_table *table, const struct xt_record_stack *stack,
		  const struct xt_stack_ids *ids)
{
	xt_table_put(table, XT_STACK_ID, ids->stack_id);
	xt_table_put(table, XT_STACK_FLAGS, stack->flags);
	xt_table_put(table, XT_STACK_SEEN_NS, ids->seen_ns);
	xt_table_put_list(table, XT_STACK_FRAMES, stack->frames, stack->frame_count);
	xt_table_put_list(table, XT_STACK_PYTHON, ids->python_ids, ids->python_count);
	xt_table_put_list(table, XT_STACK_PLACES, ids->python_places, ids->python_count);
	if (ids->modules)
		xt_table_put_list(table, XT_STACK_MODULES, ids->modules, stack->frame_count);
	xt_table_end_row(table);
}

void xt_put_module(struct xt_table *table, const struct xt_module_row *module)
{
	xt_table_put(table, XT_MODULE_ID, module->module_id);
	xt_table_put(table, XT_MODULE_LOAD_NS, module->load_ns);
	xt_table_put(table, XT_MODULE_START, module->start);
	xt_table_put(table, XT_MODULE_END, module->end);
	xt_table_put(table, XT_MODULE_BIAS, module->bias);
	xt_table_put_bytes(table, XT_MODULE_PATH, module->path, module->path_bytes);
	xt_table_put_bytes(table, XT_MODULE_BUILD_ID, module->build_id, module->build_id_bytes);
	xt_table_end_row(table);
}

void xt_put_autograd(struct xt_table *table, const struct xt_record_autograd *autograd,
		     const struct xt_autograd_ids *ids)
{
	xt_table_put(table, XT_AUTOGRAD_ID, ids->autograd_id);
	xt_table_put(table, XT_AUTOGRAD_THREAD, autograd->thread);
	xt_table_put(table, XT_AUTOGRAD_NODE_TYPE, ids->type);
	xt_table_put(table, XT_AUTOGRAD_NODE_CLASS, ids->class_name);
	xt_table_put(table, XT_AUTOGRAD_NODE_THREAD, autograd->node_thread);
	xt_table_put(table, XT_AUTOGRAD_CALLER, autograd->caller);
	xt_table_put(table, XT_AUTOGRAD_CALLER_STACK, ids->caller_stack);
	xt_table_end_row(table);
}
