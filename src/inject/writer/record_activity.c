/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns activity records into rows: kernels, copies, memsets, allocations, and what they refer to.
 * A table assigns a function to each kind of record.
 */
#include "inject/writer/record_activity.h"

#include <string.h>

#include "cuda_abi/cupti_record_bytes.h"
#include "inject/cupti/activity_pool.h"
#include "inject/cupti/cupti.h"
#include "inject/memory/crash_buffer.h"
#include "inject/runtime/process.h"
#include "inject/writer/record_calls.h"

/*
 * Interns a tuple of numbers and writes a row if it is new. 0 if out of memory. The members are the
 * columns from 2 on.
 */
static uint32_t tuple_id(struct recorder *rec, struct intern *known, enum xt_kind kind,
			 const uint32_t *members, uint32_t member_count)
{
	struct xt_table *table;
	bool is_new;
	uint32_t id = intern_id(known, members, member_count * sizeof(*members), &is_new);

	if (!is_new)
		return id;
	table = recorder_table_of_id(rec, known, kind, 0);
	if (!table)
		return 0;
	xt_table_put(table, 1, id);
	for (uint32_t i = 0; i < member_count; i++)
		xt_table_put(table, i + 2, members[i]);
	xt_table_end_row(table);
	return id;
}
_Static_assert(XT_STREAM_ID == 1 && XT_STREAM_DEVICE == 2 && XT_STREAM_STREAM == 4,
	       "streams are tuples from column 2 on");
_Static_assert(XT_SHAPE_ID == 1 && XT_SHAPE_NAME == 2 && XT_SHAPE_REGISTERS == 11,
	       "shapes are tuples from column 2 on");
_Static_assert(XT_COPY_SHAPE_ID == 1 && XT_COPY_SHAPE_KIND == 2 && XT_COPY_SHAPE_TO_DEVICE == 7,
	       "copy shapes are tuples from column 2 on");

/* Fields that all GPU work has. */
struct work {
	uint32_t correlation_id;
	uint32_t device_id, context_id, stream_id;
	uint64_t start_ns, end_ns;
	uint64_t graph_node_id;
};

/* Counts work of calls that were not recorded. */
static bool is_suppressed(struct recorder *rec, struct row_counts *row_counts,
			  const struct work *work)
{
	if (suppressed_ids_has(&rec->shutdown_dropped, work->correlation_id))
		row_counts->shutdown_dropped++;
	else if (!suppressed_ids_has(&rec->skipped, work->correlation_id))
		return false;
	else if (rec->size_limit.state >= SIZE_PAUSED)
		row_counts->beyond_size++;
	else
		rec->records_skipped++;
	return true;
}

/*
 * Starts a row of GPU work with its common columns, or returns NULL; counts it in both cases. Its
 * call was recorded. has_shape: its shape was interned.
 */
static struct xt_table *recorded_row(struct recorder *rec, enum xt_kind kind,
				     struct row_counts *row_counts, const struct work *work,
				     bool has_shape)
{
	const uint32_t stream[] = {work->device_id, work->context_id, work->stream_id};
	struct xt_table *table;
	uint32_t stream_id;

	if (!work->start_ns || work->end_ns < work->start_ns) {
		row_counts->invalid++;
		return NULL;
	}
	stream_id = tuple_id(rec, &rec->streams, XT_KIND_STREAM, stream, 3);
	table = stream_id && has_shape ? recorder_table(rec, kind, 0) : NULL;
	if (!table) { /* out of memory */
		row_counts->write_failed++;
		return NULL;
	}
	row_counts->pending++;
	rec->work_count++;
	crash_buffer_gpu(work->device_id);
	xt_table_put(table, XT_KERNEL_CORRELATION, work->correlation_id);
	xt_table_put(table, XT_KERNEL_STREAM, stream_id);
	xt_table_put(table, XT_KERNEL_START_NS, work->start_ns);
	xt_table_put(table, XT_KERNEL_DURATION_NS, work->end_ns - work->start_ns);
	xt_table_put(table, XT_KERNEL_GRAPH_NODE, work->graph_node_id);
	return table;
}
_Static_assert((int)XT_COPY_CORRELATION == XT_KERNEL_CORRELATION &&
		       (int)XT_COPY_STREAM == XT_KERNEL_STREAM &&
		       (int)XT_COPY_START_NS == XT_KERNEL_START_NS &&
		       (int)XT_COPY_DURATION_NS == XT_KERNEL_DURATION_NS &&
		       (int)XT_COPY_GRAPH_NODE == XT_KERNEL_GRAPH_NODE,
	       "copies have the columns of kernels");
_Static_assert((int)XT_SET_CORRELATION == XT_KERNEL_CORRELATION &&
		       (int)XT_SET_STREAM == XT_KERNEL_STREAM &&
		       (int)XT_SET_START_NS == XT_KERNEL_START_NS &&
		       (int)XT_SET_DURATION_NS == XT_KERNEL_DURATION_NS &&
		       (int)XT_SET_GRAPH_NODE == XT_KERNEL_GRAPH_NODE,
	       "sets have the columns of kernels");

static struct xt_table *work_row(struct recorder *rec, enum xt_kind kind,
				 struct row_counts *row_counts, const struct work *work,
				 bool has_shape)
{
	return is_suppressed(rec, row_counts, work)
		       ? NULL
		       : recorded_row(rec, kind, row_counts, work, has_shape);
}

static void add_kernel(struct recorder *rec, const struct cupti_activity_kernel *kernel,
		       const struct work *work)
{
	const uint32_t shape[] = {kernel_name_id(rec, kernel->name),
				  (uint32_t)kernel->grid[0],
				  (uint32_t)kernel->grid[1],
				  (uint32_t)kernel->grid[2],
				  (uint32_t)kernel->block[0],
				  (uint32_t)kernel->block[1],
				  (uint32_t)kernel->block[2],
				  (uint32_t)kernel->static_shared_bytes,
				  (uint32_t)kernel->dynamic_shared_bytes,
				  kernel->registers_per_thread};
	uint32_t shape_id = tuple_id(rec, &rec->shapes, XT_KIND_SHAPE, shape, 10);
	struct xt_table *table = recorded_row(rec, XT_KIND_KERNEL, &rec->kernels, work, shape_id);

	if (!table)
		return;
	rec->names_lost += !shape[0];
	xt_table_put(table, XT_KERNEL_SHAPE, shape_id);
	xt_table_end_row(table);
}

/* A stopped process must not write new shapes. */
static void take_kernel(struct recorder *rec, const struct cupti_activity *record)
{
	const struct cupti_activity_kernel *kernel = (const void *)record;
	const struct work work = {
		kernel->correlation_id, kernel->device_id, kernel->context_id,	  kernel->stream_id,
		kernel->start_ns,	kernel->end_ns,	   kernel->graph_node_id,
	};

	if (!is_suppressed(rec, &rec->kernels, &work))
		add_kernel(rec, kernel, &work);
}

/* One execution of a graph that was recorded as a whole (graph_level.h). */
static void take_graph(struct recorder *rec, const struct cupti_activity *record)
{
	const struct cupti_activity_graph_trace *graph = (const void *)record;
	bool starts_on_host = graph->device_id == INT32_MAX; /* its first node is a host function */
	const struct work work = {
		.correlation_id = graph->correlation_id,
		.device_id = starts_on_host ? graph->end_device_id : graph->device_id,
		.context_id = starts_on_host ? graph->end_context_id : graph->context_id,
		.stream_id = graph->stream_id,
		.start_ns = graph->start_ns,
		.end_ns = graph->end_ns,
		.graph_node_id = (uint64_t)graph->graph_id << 32 | XT_NODE_WHOLE_GRAPH,
	};
	const uint32_t shape[10] = {
		recorder_string(rec, XT_WHOLE_GRAPH_NAME, strlen(XT_WHOLE_GRAPH_NAME))};
	uint32_t shape_id = tuple_id(rec, &rec->shapes, XT_KIND_SHAPE, shape, 10);
	struct xt_table *table = work_row(rec, XT_KIND_KERNEL, &rec->kernels, &work, shape_id);

	if (!table)
		return;
	xt_table_put(table, XT_KERNEL_SHAPE, shape_id);
	xt_table_end_row(table);
}

static void add_copy(struct recorder *rec, const struct work *work, const uint32_t *shape,
		     uint64_t bytes)
{
	uint32_t shape_id = tuple_id(rec, &rec->copy_shapes, XT_KIND_COPY_SHAPE, shape, 6);
	struct xt_table *table = work_row(rec, XT_KIND_COPY, &rec->copies, work, shape_id);

	if (!table)
		return;
	xt_table_put(table, XT_COPY_SHAPE, shape_id);
	xt_table_put(table, XT_COPY_BYTES, bytes);
	xt_table_end_row(table);
}

static void take_copy(struct recorder *rec, const struct cupti_activity *record)
{
	const struct cupti_activity_memcpy *copy = (const void *)record;
	const struct work work = {
		copy->correlation_id, copy->device_id, copy->context_id,    copy->stream_id,
		copy->start_ns,	      copy->end_ns,    copy->graph_node_id,
	};
	const uint32_t shape[] = {copy->copy_kind,
				  copy->source_kind,
				  copy->destination_kind,
				  copy->flags & XT_CUPTI_FLAG_ASYNC,
				  0,
				  0};

	add_copy(rec, &work, shape, copy->bytes);
}

static void take_peer_copy(struct recorder *rec, const struct cupti_activity *record)
{
	const struct cupti_activity_memcpy_peer *copy = (const void *)record;
	const struct work work = {
		copy->correlation_id, copy->device_id, copy->context_id,    copy->stream_id,
		copy->start_ns,	      copy->end_ns,    copy->graph_node_id,
	};
	const uint32_t shape[] = {copy->copy_kind,
				  copy->source_kind,
				  copy->destination_kind,
				  copy->flags & XT_CUPTI_FLAG_ASYNC,
				  copy->source_device_id + 1,
				  copy->destination_device_id + 1};

	add_copy(rec, &work, shape, copy->bytes);
}

static void take_set(struct recorder *rec, const struct cupti_activity *record)
{
	const struct cupti_activity_memset *set = (const void *)record;
	const struct work work = {
		set->correlation_id, set->device_id, set->context_id,	 set->stream_id,
		set->start_ns,	     set->end_ns,    set->graph_node_id,
	};
	struct xt_table *table = work_row(rec, XT_KIND_SET, &rec->sets, &work, true);

	if (!table)
		return;
	xt_table_put(table, XT_SET_MEMORY, set->memory_kind);
	xt_table_put(table, XT_SET_BYTES, set->bytes);
	xt_table_end_row(table);
}

#define EDGE_NS UINT64_C(1000000000)

static void take_memory(struct recorder *rec, const struct cupti_activity *record)
{
	const struct cupti_activity_memory *memory = (const void *)record;
	struct xt_table *table;

	/* Kinds may stay enabled (graph_level.h), and calls may last until recording resumes. */
	if (rec->stopped_ns && memory->timestamp_ns > rec->stopped_ns &&
	    (!rec->resumed_ns || memory->timestamp_ns < rec->resumed_ns ||
	     (memory->timestamp_ns < rec->resumed_ns + EDGE_NS &&
	      suppressed_ids_has(&rec->skipped, memory->correlation_id))))
		return;
	if (recorder_is_full(rec)) {
		rec->memory.beyond_size++;
		return;
	}
	table = recorder_table(rec, XT_KIND_MEMORY, 0);
	if (!table) { /* out of memory */
		rec->memory.write_failed++;
		return;
	}
	rec->memory.pending++;
	if (rec->size_limit.bound.keeps_newest)
		memory_totals_take(&rec->memory_totals, memory);
	xt_table_put(table, XT_MEMORY_CORRELATION, memory->correlation_id);
	xt_table_put(table, XT_MEMORY_OPERATION, memory->operation);
	xt_table_put(table, XT_MEMORY_ADDRESS, memory->address);
	xt_table_put(table, XT_MEMORY_BYTES, memory->bytes);
	xt_table_put(table, XT_MEMORY_TIME_NS, memory->timestamp_ns);
	xt_table_put(table, XT_MEMORY_DEVICE, memory->device_id);
	xt_table_put(table, XT_MEMORY_KIND, memory->memory_kind);
	xt_table_end_row(table);
}

static void (*const takers[])(struct recorder *, const struct cupti_activity *) = {
	[XT_CUPTI_ACTIVITY_KERNEL] = take_kernel,
	[XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL] = take_kernel,
	[XT_CUPTI_ACTIVITY_MEMCPY] = take_copy,
	[XT_CUPTI_ACTIVITY_MEMCPY2] = take_peer_copy,
	[XT_CUPTI_ACTIVITY_MEMSET] = take_set,
	[XT_CUPTI_ACTIVITY_MEMORY2] = take_memory,
	[XT_CUPTI_ACTIVITY_GRAPH_TRACE] = take_graph,
};

/* The record after `before`, NULL at the end. Retries a failure once. */
static struct cupti_activity *next_record(struct recorder *rec,
					  const struct activity_buffer *buffer,
					  struct cupti_activity *before)
{
	struct cupti_activity *record = before;
	uint32_t result = XT_CUPTI_SUCCESS;

	for (int i = 0; i < 2; i++) {
		result = cupti.cuptiActivityGetNextRecord(buffer->data, buffer->header->valid_bytes,
							  &record);
		if (result == XT_CUPTI_SUCCESS)
			return record;
		if (!cupti_has_failed(result) || !buffer->header->valid_bytes)
			return NULL;
		record = before;
	}
	rec->buffers_lost++;
	return NULL;
}

static void take_buffer(struct recorder *rec, const struct activity_buffer *buffer)
{
	struct cupti_activity *record, *before = NULL;

	for (; (record = next_record(rec, buffer, before)); before = record) {
		if (before)
			undelivered_learn_bytes(before, record);
		if (record->kind < sizeof(takers) / sizeof(*takers) && takers[record->kind])
			takers[record->kind](rec, record);
		else
			rec->records_other++;
	}
}

/*
 * CUPTI writes this buffer on other threads. So this reads each word only once, and stops at a
 * record whose name is not set yet. The race is intended, hence no thread sanitizer.
 */
__attribute__((no_sanitize("thread"))) static void take_names(struct recorder *rec,
							      struct activity_buffer *buffer)
{
	while (buffer->peeked_bytes + sizeof(struct cupti_activity_kernel) <= ACTIVITY_DATA_BYTES) {
		uint8_t *record = buffer->data + buffer->peeked_bytes;
		uint32_t kind = __atomic_load_n((uint32_t *)record, __ATOMIC_RELAXED) &
				~XT_CUPTI_RECORD_BEGUN;
		uint32_t bytes = undelivered_record_bytes(kind);

		if (!kind || !bytes)
			return;
		if (kind == XT_CUPTI_ACTIVITY_KERNEL ||
		    kind == XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL) {
			size_t place = offsetof(struct cupti_activity_kernel, name);
			uintptr_t name =
				__atomic_load_n((uintptr_t *)(record + place), __ATOMIC_RELAXED);

			if (!name)
				return;
			kernel_name_id(rec, (const char *)name);
		}
		buffer->peeked_bytes += bytes;
	}
}

void prefetch_names(struct recorder *rec)
{
	struct activity_buffer *buffer;
	uint32_t index = 0;

	/* If buffers complete quickly, reading them is enough. */
	if (rec->buffers_completed == rec->buffers_completed_before)
		while ((buffer = activity_next_unread(&index)))
			take_names(rec, buffer);
	rec->buffers_completed_before = rec->buffers_completed;
}

void record_activity(struct recorder *rec)
{
	struct activity_buffer *buffer;
	uint32_t count = 0;

	if (rec->write_error)
		return;
	while (rec->held_count + count < HELD_BUFFERS_MAX && (buffer = activity_take_completed()))
		rec->taken[count++] = buffer;
	/*
	 * Calls with work in these buffers have started. Read the rings first, to know which were
	 * not recorded.
	 */
	if (count && atomic_load(&recording_was_paused))
		record_calls(rec);
	for (uint32_t i = 0; i < count; i++) {
		take_buffer(rec, rec->taken[i]);
		rec->held[rec->held_count++] = rec->taken[i];
		rec->buffers_completed++;
	}
}
