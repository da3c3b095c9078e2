/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every size is checked against the size of the record before it is used.
 */
#include "log/write/event_rows.h"

#include <stddef.h>

static size_t code_bytes(const struct xt_python_code *code)
{
	return (sizeof(*code) + code->name_bytes + code->file_bytes + 7) & ~(size_t)7;
}

const struct xt_python_code *xt_python_first_code(const struct xt_python_part *part)
{
	return (const void *)&part->frames[part->frame_count];
}

const struct xt_python_code *xt_python_next_code(const struct xt_python_code *code)
{
	return (const void *)((const uint8_t *)code + code_bytes(code));
}

const struct xt_python_part *xt_python_part(const struct xt_record_stack *record, bool has_modules)
{
	const uint8_t *end = (const uint8_t *)record + record->head.bytes;
	size_t module_bytes = has_modules ? xt_stack_modules_bytes(record->frame_count) : 0;
	const struct xt_python_part *part =
		(const void *)&record->frames[record->frame_count + module_bytes / 8];
	const struct xt_python_code *code;
	size_t bytes;

	if (record->head.bytes <
	    sizeof(*record) + record->frame_count * sizeof(uint64_t) + module_bytes + sizeof(*part))
		return NULL;
	bytes = (size_t)(end - (const uint8_t *)part) - sizeof(*part);
	if (!part->frame_count || part->frame_count > XT_PYTHON_FRAMES_MAX ||
	    part->code_count > XT_PYTHON_CODES_MAX ||
	    bytes < part->frame_count * sizeof(part->frames[0]))
		return NULL;
	bytes -= part->frame_count * sizeof(part->frames[0]);
	code = xt_python_first_code(part);
	for (uint32_t i = 0; i < part->code_count; i++) {
		if (bytes < sizeof(*code) || bytes < code_bytes(code))
			return NULL;
		bytes -= code_bytes(code);
		code = xt_python_next_code(code);
	}
	for (uint32_t i = 0; i < part->frame_count; i++)
		if (part->frames[i].code >= part->code_count ||
		    part->frames[i].place > record->frame_count)
			return NULL;
	return part;
}

void xt_put_call(struct xt_table *table, const struct xt_record_call *call, uint64_t thread_id,
		 uint64_t stack_id, uint64_t autograd_id)
{
	const struct xt_autograd_state *autograd =
		autograd_id ? xt_record_call_autograd(call) : NULL;

	xt_write_call(table, &(struct xt_row_call){
				     .thread = thread_id,
				     .api = call->api,
				     .correlation = call->correlation_id,
				     .stack = stack_id,
				     .enter_ns = call->enter_ns,
				     .duration_ns = call->exit_ns - call->enter_ns,
				     .result = (uint32_t)call->result,
				     .one_in = call->one_in,
				     .graph_exec = xt_record_graph_exec(call),
				     .sequence = autograd ? autograd->sequence : 0,
				     .autograd = autograd ? autograd_id : 0,
				     .node_sequence = autograd ? autograd->node_sequence : 0,
			     });
}

void xt_put_node(struct xt_table *table, const struct xt_record_node *node, uint64_t thread_id,
		 uint64_t stack_id, uint64_t autograd_id)
{
	const struct xt_autograd_state *autograd =
		autograd_id ? xt_record_node_autograd(node) : NULL;

	xt_write_graph_node(table, &(struct xt_row_graph_node){
					   .id = node->node_id,
					   .origin = node->origin_id,
					   .stack = stack_id,
					   .time_ns = node->time_ns,
					   .type = node->node_type,
					   .thread = thread_id,
					   .sequence = autograd ? autograd->sequence : 0,
					   .autograd = autograd ? autograd_id : 0,
					   .node_sequence = autograd ? autograd->node_sequence : 0,
				   });
}

void xt_put_node_update(struct xt_table *table, const struct xt_record_node *node,
			uint64_t thread_id, uint64_t stack_id)
{
	xt_write_graph_update(table, &(struct xt_row_graph_update){
					     .node = node->node_id,
					     .exec = node->graph_exec,
					     .stack = stack_id,
					     .time_ns = node->time_ns,
					     .thread = thread_id,
					     .graph = node->origin_id,
				     });
}

void xt_put_range(struct xt_table *table, const struct xt_record_range *range, uint64_t thread_id,
		  uint64_t stack_id, const struct xt_range_texts *texts)
{
	xt_write_range(table, &(struct xt_row_range){
				      .operation = range->operation,
				      .thread = thread_id,
				      .time_ns = range->time_ns,
				      .domain = texts->domain,
				      .text = texts->text,
				      .key = range->key,
				      .stack = stack_id,
				      .category = range->category,
				      .payload = range->payload,
				      .payload_type = range->payload_type,
				      .color = range->color,
				      .values = texts->values,
			      });
}

void xt_put_tuple(struct xt_table *table, uint64_t id, const uint32_t *members, uint32_t count)
{
	xt_table_put(table, 1, id);
	for (uint32_t i = 0; i < count; i++)
		xt_table_put(table, i + 2, members[i]);
	xt_table_end_row(table);
}
_Static_assert(XT_STREAM_ID == 1 && XT_STREAM_DEVICE == 2 && XT_STREAM_STREAM == 4 &&
		       XT_SHAPE_ID == 1 && XT_SHAPE_NAME == 2 && XT_SHAPE_REGISTERS == 11 &&
		       XT_COPY_SHAPE_ID == 1 && XT_COPY_SHAPE_KIND == 2 &&
		       XT_COPY_SHAPE_TO_DEVICE == 7 && XT_PYTHON_FRAME_ID == 1 &&
		       XT_PYTHON_FRAME_NAME == 2 && XT_PYTHON_FRAME_FIRST_LINE == 5,
	       "streams, shapes and Python frames are tuples from column 2 on");
