/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes in the Python part of a stack record are checked against the size of the record before they
 * are used. CUPTI's records are whole: see xt_gpu_work_of().
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

const struct xt_python_part *xt_python_part(const struct xt_record_stack *record)
{
	const uint8_t *end = (const uint8_t *)record + record->head.bytes;
	size_t module_bytes = xt_stack_modules_bytes(record->frame_count);
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

/* The members that the records of kernels, copies and memsets share. */
#define GPU_WORK(work_kind, record)                                                                \
	.kind = (work_kind), .correlation_id = (record)->correlation_id,                           \
	.place = {(record)->device_id, (record)->context_id, (record)->stream_id},                 \
	.start_ns = (record)->start_ns, .end_ns = (record)->end_ns,                                \
	.graph_node_id = (record)->graph_node_id

static void read_kernel(const void *record, struct xt_gpu_work *work)
{
	const struct cupti_activity_kernel *kernel = record;

	*work = (struct xt_gpu_work){
		GPU_WORK(XT_KIND_KERNEL, kernel),
		.name = (uintptr_t)kernel->name,
		.like = {(uint32_t)kernel->grid[0], (uint32_t)kernel->grid[1],
			 (uint32_t)kernel->grid[2], (uint32_t)kernel->block[0],
			 (uint32_t)kernel->block[1], (uint32_t)kernel->block[2],
			 (uint32_t)kernel->static_shared_bytes,
			 (uint32_t)kernel->dynamic_shared_bytes, kernel->registers_per_thread},
	};
}

/* One execution of a graph that was recorded as a whole (inject/cupti/graph_level.h). */
static void read_graph(const void *record, struct xt_gpu_work *work)
{
	const struct cupti_activity_graph_trace *graph = record;
	bool starts_on_host = graph->device_id == INT32_MAX; /* its first node is a host function */

	*work = (struct xt_gpu_work){
		.kind = XT_KIND_KERNEL,
		.correlation_id = graph->correlation_id,
		.place = {starts_on_host ? graph->end_device_id : graph->device_id,
			  starts_on_host ? graph->end_context_id : graph->context_id,
			  graph->stream_id},
		.start_ns = graph->start_ns,
		.end_ns = graph->end_ns,
		.graph_node_id = (uint64_t)graph->graph_id << 32 | XT_NODE_WHOLE_GRAPH,
	};
}

static void read_copy(const void *record, struct xt_gpu_work *work)
{
	const struct cupti_activity_memcpy *copy = record;

	*work = (struct xt_gpu_work){
		GPU_WORK(XT_KIND_COPY, copy),
		.bytes = copy->bytes,
		.like = {copy->copy_kind, copy->source_kind, copy->destination_kind,
			 copy->flags & XT_CUPTI_FLAG_ASYNC},
	};
}

static void read_peer_copy(const void *record, struct xt_gpu_work *work)
{
	const struct cupti_activity_memcpy_peer *copy = record;

	*work = (struct xt_gpu_work){
		GPU_WORK(XT_KIND_COPY, copy),
		.bytes = copy->bytes,
		.like = {copy->copy_kind, copy->source_kind, copy->destination_kind,
			 copy->flags & XT_CUPTI_FLAG_ASYNC, copy->source_device_id + 1,
			 copy->destination_device_id + 1},
	};
}

static void read_set(const void *record, struct xt_gpu_work *work)
{
	const struct cupti_activity_memset *set = record;

	*work = (struct xt_gpu_work){
		GPU_WORK(XT_KIND_SET, set),
		.bytes = set->bytes,
		.like = {set->memory_kind},
	};
}

static void read_memory(const void *record, struct xt_gpu_work *work)
{
	const struct cupti_activity_memory *memory = record;

	*work = (struct xt_gpu_work){
		.kind = XT_KIND_MEMORY,
		.correlation_id = memory->correlation_id,
		.place = {memory->device_id, memory->memory_kind, memory->operation},
		.start_ns = memory->timestamp_ns,
		.end_ns = memory->timestamp_ns,
		.address = memory->address,
		.bytes = memory->bytes,
	};
}

static void (*const readers[])(const void *record, struct xt_gpu_work *work) = {
	[XT_CUPTI_ACTIVITY_KERNEL] = read_kernel,
	[XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL] = read_kernel,
	[XT_CUPTI_ACTIVITY_GRAPH_TRACE] = read_graph,
	[XT_CUPTI_ACTIVITY_MEMCPY] = read_copy,
	[XT_CUPTI_ACTIVITY_MEMCPY2] = read_peer_copy,
	[XT_CUPTI_ACTIVITY_MEMSET] = read_set,
	[XT_CUPTI_ACTIVITY_MEMORY2] = read_memory,
};

bool xt_gpu_work_of(uint32_t kind, const struct cupti_activity *record, struct xt_gpu_work *work)
{
	if (kind >= sizeof(readers) / sizeof(readers[0]) || !readers[kind])
		return false;
	readers[kind](record, work);
	return true;
}

/* Memsets have the columns of copies. */
_Static_assert((int)XT_SET_MEMORY == (int)XT_COPY_SHAPE && (int)XT_SET_BYTES == (int)XT_COPY_BYTES,
	       "the memory kind of a memset is where a copy has its shape");

void xt_put_work(struct xt_table *table, const struct xt_gpu_work *work, uint64_t stream_id,
		 uint64_t shape_id)
{
	const struct xt_row_copy row = {
		.correlation = work->correlation_id,
		.stream = stream_id,
		.shape = work->kind == XT_KIND_SET ? work->like[0] : shape_id,
		.start_ns = work->start_ns,
		.duration_ns = work->end_ns - work->start_ns,
		.graph_node = work->graph_node_id,
		.bytes = work->bytes,
	};

	if (work->kind == XT_KIND_KERNEL)
		xt_write_kernel(table, &(struct xt_row_kernel){.correlation = row.correlation,
							       .stream = row.stream,
							       .shape = row.shape,
							       .start_ns = row.start_ns,
							       .duration_ns = row.duration_ns,
							       .graph_node = row.graph_node});
	else if (work->kind == XT_KIND_MEMORY)
		xt_write_memory(table, &(struct xt_row_memory){.correlation = row.correlation,
							       .operation = work->place[2],
							       .address = work->address,
							       .bytes = work->bytes,
							       .time_ns = work->start_ns,
							       .device = work->place[0],
							       .kind = work->place[1]});
	else
		xt_write_copy(table, &row);
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
