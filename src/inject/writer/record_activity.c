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
#include "log/write/event_rows.h"

/* Interns a tuple of numbers and writes a row if it is new. 0 if out of memory. */
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
	xt_put_tuple(table, id, members, member_count);
	return id;
}

/* Counts work of calls that were not recorded. */
static bool is_suppressed(struct recorder *rec, struct row_counts *row_counts,
			  const struct xt_gpu_work *work)
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

static uint32_t kernel_name(struct recorder *rec, const struct xt_gpu_work *work)
{
	return xt_gpu_work_is_graph(work)
		       ? recorder_string(rec, XT_WHOLE_GRAPH_NAME, strlen(XT_WHOLE_GRAPH_NAME))
		       : kernel_name_id(rec, (const char *)(uintptr_t)work->name);
}

/* Adds a row of GPU work, and counts it. A stopped process must not write new shapes. */
static void add_work(struct recorder *rec, struct row_counts *row_counts,
		     const struct xt_gpu_work *work)
{
	uint32_t shape[10] = {0}, stream_id = 0, shape_id = 1;
	struct xt_table *table;

	if (is_suppressed(rec, row_counts, work))
		return;
	if (work->kind == XT_KIND_KERNEL) {
		shape[0] = kernel_name(rec, work);
		memcpy(shape + 1, work->like, sizeof(work->like));
		shape_id = tuple_id(rec, &rec->shapes, XT_KIND_SHAPE, shape, 10);
	} else if (work->kind == XT_KIND_COPY) {
		shape_id = tuple_id(rec, &rec->copy_shapes, XT_KIND_COPY_SHAPE, work->like, 6);
	}
	if (!work->start_ns || work->end_ns < work->start_ns) {
		row_counts->invalid++;
		return;
	}
	if (shape_id)
		stream_id = tuple_id(rec, &rec->streams, XT_KIND_STREAM, work->place, 3);
	table = stream_id ? recorder_table(rec, work->kind, 0) : NULL;
	if (!table) { /* out of memory */
		row_counts->write_failed++;
		return;
	}
	row_counts->pending++;
	rec->work_count++;
	crash_buffer_gpu(work->place[0]);
	rec->names_lost += work->kind == XT_KIND_KERNEL && !shape[0];
	xt_put_work(table, work, stream_id, shape_id);
}

#define EDGE_NS UINT64_C(1000000000)

static void add_memory(struct recorder *rec, const struct cupti_activity *record,
		       const struct xt_gpu_work *work)
{
	struct xt_table *table;

	/* Kinds may stay enabled (graph_level.h), and calls may last until recording resumes. */
	if (rec->stopped_ns && work->start_ns > rec->stopped_ns &&
	    (!rec->resumed_ns || work->start_ns < rec->resumed_ns ||
	     (work->start_ns < rec->resumed_ns + EDGE_NS &&
	      suppressed_ids_has(&rec->skipped, work->correlation_id))))
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
		memory_totals_take(&rec->memory_totals, (const void *)record);
	xt_put_work(table, work, 0, 0);
}

static void take_record(struct recorder *rec, const struct cupti_activity *record)
{
	struct xt_gpu_work work;

	if (!xt_gpu_work_of(record->kind, record, &work))
		rec->records_other++;
	else if (work.kind == XT_KIND_MEMORY)
		add_memory(rec, record, &work);
	else
		add_work(rec,
			 work.kind == XT_KIND_KERNEL ? &rec->kernels
			 : work.kind == XT_KIND_COPY ? &rec->copies
						     : &rec->sets,
			 &work);
}

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
		take_record(rec, record);
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
