/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From activity buffers to KERNEL, SHAPE, STREAM and STRING rows. Writer thread only.
 */
#include <string.h>

#include "inject/cupti.h"
#include "inject/recorder.h"

static uint32_t string_id(struct recorder *rec, const char *text)
{
	size_t length = text ? strlen(text) : 0;
	struct xt_table *table;
	uint32_t id;
	bool is_new;

	if (!length)
		return 0;
	id = intern_id(&rec->strings, text, length, &is_new);
	table = is_new ? recorder_table(rec, XT_KIND_STRING, length) : NULL;
	if (table) {
		xt_table_put(table, XT_STRING_ID, id);
		xt_table_put_bytes(table, XT_STRING_TEXT, text, length);
		xt_table_end_row(table);
	}
	return id;
}

/* Interns a tuple of numbers: its id, and a row of it where it is new. The tuple's members are
 * the columns from 2 on. */
static uint32_t tuple_id(struct recorder *rec, struct intern *known, enum xt_kind kind,
			 const uint32_t *members, uint32_t member_count)
{
	struct xt_table *table;
	bool is_new;
	uint32_t id = intern_id(known, members, member_count * sizeof(*members), &is_new);

	table = is_new ? recorder_table(rec, kind, 0) : NULL;
	if (table) {
		xt_table_put(table, 1, id);
		for (uint32_t i = 0; i < member_count; i++)
			xt_table_put(table, i + 2, members[i]);
		xt_table_end_row(table);
	}
	return id;
}
_Static_assert(XT_STREAM_ID == 1 && XT_STREAM_DEVICE == 2 && XT_STREAM_STREAM == 4,
	       "streams are tuples from column 2 on");
_Static_assert(XT_SHAPE_ID == 1 && XT_SHAPE_NAME == 2 && XT_SHAPE_REGISTERS == 11,
	       "shapes are tuples from column 2 on");

static bool is_valid(const struct cupti_activity_kernel *kernel)
{
	return kernel->start_ns && kernel->end_ns >= kernel->start_ns;
}

static void take_kernel(struct recorder *rec, const struct cupti_activity_kernel *kernel)
{
	const uint32_t stream[] = {kernel->device_id, kernel->context_id, kernel->stream_id};
	uint32_t shape[] = {0,
			    (uint32_t)kernel->grid[0],
			    (uint32_t)kernel->grid[1],
			    (uint32_t)kernel->grid[2],
			    (uint32_t)kernel->block[0],
			    (uint32_t)kernel->block[1],
			    (uint32_t)kernel->block[2],
			    (uint32_t)kernel->static_shared_bytes,
			    (uint32_t)kernel->dynamic_shared_bytes,
			    kernel->registers_per_thread};
	uint32_t stream_id, shape_id;
	struct xt_table *table;

	if (!is_valid(kernel)) {
		rec->kernels_invalid++;
		return;
	}
	shape[0] = string_id(rec, kernel->name);
	stream_id = tuple_id(rec, &rec->streams, XT_KIND_STREAM, stream, 3);
	shape_id = tuple_id(rec, &rec->shapes, XT_KIND_SHAPE, shape, 10);
	table = recorder_table(rec, XT_KIND_KERNEL, 0);
	rec->kernels_pending++;
	if (!table)
		return; /* no memory for a chunk: the flush that follows fails and counts them */
	xt_table_put(table, XT_KERNEL_CORRELATION, kernel->correlation_id);
	xt_table_put(table, XT_KERNEL_STREAM, stream_id);
	xt_table_put(table, XT_KERNEL_SHAPE, shape_id);
	xt_table_put(table, XT_KERNEL_START_NS, kernel->start_ns);
	xt_table_put(table, XT_KERNEL_DURATION_NS, kernel->end_ns - kernel->start_ns);
	xt_table_put(table, XT_KERNEL_GRAPH_NODE, kernel->graph_node_id);
	xt_table_end_row(table);
}

static void take_buffer(struct recorder *rec, const struct activity_buffer *buffer)
{
	struct cupti_activity *record = NULL;

	while (cupti.cuptiActivityGetNextRecord(buffer->data, buffer->header->valid_bytes,
						&record) == XT_CUPTI_SUCCESS) {
		if (record->kind == XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL ||
		    record->kind == XT_CUPTI_ACTIVITY_KERNEL)
			take_kernel(rec, (const struct cupti_activity_kernel *)record);
		else
			rec->records_other++;
	}
}

static void ask_for_dropped(struct recorder *rec)
{
	size_t dropped = 0;

	if (cupti.cuptiActivityGetNumDroppedRecords &&
	    cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == XT_CUPTI_SUCCESS)
		rec->records_dropped += dropped;
}

void record_kernels(struct recorder *rec)
{
	struct activity_buffer *buffer;
	bool any = false;

	while (rec->held_count < HELD_BUFFERS_MAX &&
	       (buffer = activity_next_completed(&rec->last_buffer_sequence))) {
		take_buffer(rec, buffer);
		rec->held[rec->held_count++] = buffer;
		rec->buffers_completed++;
		any = true;
	}
	if (any)
		ask_for_dropped(rec);
}
