/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns ring records into CALL, STACK, PYTHON_FRAME, AUTOGRAD, GRAPH_NODE and RANGE rows. Writer
 * thread only.
 *
 * Turns activity records of CUPTI into rows, too: kernels, copies, memsets, allocations, and what
 * they refer to. A table assigns a function to each kind of record.
 */
#include "inject/writer/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cuda_abi/cupti_record_bytes.h"
#include "inject/capture/ring.h"
#include "inject/cupti/activity_pool.h"
#include "inject/cupti/cupti.h"
#include "inject/memory/crash_buffer.h"
#include "inject/nvtx/nvtx.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/process.h"
#include "inject/writer/snapshot.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/write/event_rows.h"
#include "xtrace/crash_buffer_format.h"

#define OPEN_RANGES_MAX 4096

static bool add_open_range(struct open_ranges *open, const struct open_range *range)
{
	if (open->count < OPEN_RANGES_MAX && !grow(open->rows, open->capacity, open->count + 1))
		open->rows[open->count++] = *range;
	return true;
}

static bool end_open_range(struct open_ranges *open, const struct open_range *end,
			   struct open_range *closed)
{
	for (size_t i = open->count; i-- > 0;) {
		const struct open_range *range = &open->rows[i];

		if (range->is_start != end->is_start ||
		    (end->is_start
			     ? range->key != end->key
			     : range->thread_id != end->thread_id || range->domain != end->domain))
			continue;
		*closed = *range;
		open->count--;
		memmove(&open->rows[i], &open->rows[i + 1],
			(open->count - i) * sizeof(*open->rows));
		return true;
	}
	/* Another thread may end a range before its own events are read. */
	return !open->had_stop || open->count == OPEN_RANGES_MAX ||
	       (end->is_start && end->key > open->key_before);
}

/*
 * Notes an event. Returns false if it ends a range that began while recording was stopped. Tracks
 * at most OPEN_RANGES_MAX ranges, and accepts every end beyond that.
 * triggers: of the range, if the event opens one
 * closed: receives the range that the event ends, if it is tracked
 */
static bool note_range(struct open_ranges *open, const struct xt_record_range *record,
		       uint32_t thread_id, uint32_t triggers, struct open_range *closed)
{
	const struct open_range range = {
		.key = record->key,
		.domain = record->domain,
		.thread_id = thread_id,
		.is_start =
			record->operation == XT_RANGE_START || record->operation == XT_RANGE_END,
		.start_ns = record->time_ns,
		.triggers = triggers,
	};

	switch (record->operation) {
	case XT_RANGE_PUSH:
	case XT_RANGE_START:
		return add_open_range(open, &range);
	case XT_RANGE_POP:
	case XT_RANGE_END:
		return end_open_range(open, &range, closed);
	default:
		return true;
	}
}

/* The Python frames of a stack. */
struct recorded_python {
	uint32_t count;
	uint64_t ids[XT_PYTHON_FRAMES_MAX];    /* XT_PYTHON_FRAME_ID, innermost first */
	uint64_t places[XT_PYTHON_FRAMES_MAX]; /* XT_STACK_PLACES */
};

struct frame_key {
	uint32_t name, file, line, first_line;
};

static uint32_t frame_id(struct recorder *rec, const struct frame_key *key)
{
	struct xt_table *table;
	uint32_t id = recorder_id(rec, &rec->python_frames, key, sizeof(*key), XT_KIND_PYTHON_FRAME,
				  0, &table);

	if (table)
		xt_write_python_frame(table,
				      &(struct xt_row_python_frame){id, key->name, key->file,
								    key->line, key->first_line});
	return id;
}

/* False if out of memory for a row. */
static bool record_python_frames(struct recorder *rec, const struct xt_record_stack *record,
				 struct recorded_python *out)
{
	const struct xt_python_part *part = xt_python_part(record);
	struct frame_key codes[XT_PYTHON_CODES_MAX];
	const struct xt_python_code *code;

	out->count = part ? part->frame_count : 0;
	code = part ? xt_python_first_code(part) : NULL;
	for (uint32_t i = 0; part && i < part->code_count; i++) {
		codes[i].name = recorder_string(rec, code->text, code->name_bytes);
		codes[i].file =
			recorder_string(rec, code->text + code->name_bytes, code->file_bytes);
		if ((!codes[i].name && code->name_bytes) || (!codes[i].file && code->file_bytes))
			return false;
		codes[i].first_line = code->first_line;
		code = xt_python_next_code(code);
	}
	for (uint32_t i = 0; i < out->count; i++) {
		struct frame_key key = codes[part->frames[i].code];

		key.line = part->frames[i].line;
		out->ids[i] = frame_id(rec, &key);
		if (!out->ids[i])
			return false;
		out->places[i] = part->frames[i].place;
	}
	return true;
}

/*
 * The XT_AUTOGRAD_ID of a state; 0 if out of memory. caller_stack: XT_STACK_ID of the Python frames
 * in backward(), or 0.
 */
static uint32_t record_autograd(struct recorder *rec, const struct xt_record_autograd *record,
				uint32_t caller_stack)
{
	const struct {
		uint64_t thread, node_thread;
		uint32_t type, class_name, caller, caller_stack;
	} key = {
		.thread = record->thread,
		.node_thread = record->node_thread,
		.type = recorder_string(rec, record->text, record->type_bytes),
		.class_name = recorder_string(rec, record->text + record->type_bytes,
					      record->class_bytes),
		.caller = record->caller,
		.caller_stack = caller_stack,
	};
	struct xt_table *table;
	uint32_t id;

	if ((!key.type && record->type_bytes) || (!key.class_name && record->class_bytes))
		return 0;
	id = recorder_id(rec, &rec->autograd, &key, sizeof(key), XT_KIND_AUTOGRAD, 0, &table);
	if (table)
		xt_write_autograd(table, &(struct xt_row_autograd){
						 .id = id,
						 .thread = record->thread,
						 .node_type = key.type,
						 .node_class = key.class_name,
						 .node_thread = record->node_thread,
						 .caller = record->caller,
						 .caller_stack = key.caller_stack,
					 });
	return id;
}

static void take_module(struct recorder *rec, struct thread_buffer *tb,
			const struct xt_record_module *record)
{
	struct module_image image = {
		.start = record->start,
		.end = record->end,
		.bias = record->bias,
		.build_id_bytes = record->build_id_bytes,
	};
	char path[XT_MODULE_PATH_MAX];
	size_t path_bytes;

	if (record->module_slot >= XT_MODULE_SLOT_COUNT ||
	    record->build_id_bytes > sizeof(image.build_id))
		return;
	tb->modules_changed = true;
	tb->slot_module_id[record->module_slot] = 0;
	if (recorder_is_full(rec)) /* no further stack refers to it */
		return;
	memcpy(image.build_id, record->text, record->build_id_bytes);
	path_bytes = module_path(&image, (const char *)record->text + record->build_id_bytes,
				 record->path_bytes, path);
	tb->slot_module_id[record->module_slot] =
		recorder_module(rec, &image, path, path_bytes, rec->last_scan_ns);
}

/* Finds the XT_MODULE_ID of each frame. False if the row of one was lost. */
static bool find_modules(const struct thread_buffer *tb, struct xt_record_stack *record,
			 uint64_t *ids)
{
	const uint16_t *slots = xt_stack_modules(record);

	for (uint32_t i = 0; i < record->frame_count; i++) {
		ids[i] = slots[i] < XT_MODULE_SLOT_COUNT ? tb->slot_module_id[slots[i]] : 0;
		if (slots[i] != XT_MODULE_SLOT_NONE && !ids[i])
			return false;
	}
	return true;
}

/* Returns the id of a stack; 0 if out of memory. */
static uint32_t intern_stack(struct recorder *rec, struct xt_record_stack *record,
			     const uint64_t *modules)
{
	/* Everything that makes two stacks equal: counts, flags and contents. */
	uint64_t key[2 + XT_STACK_FRAMES_MAX + XT_STACK_FRAMES_MAX / 2 + XT_PYTHON_FRAMES_MAX];
	struct recorded_python python;
	struct xt_table *table;
	uint32_t id, count = 0;

	if (!record_python_frames(rec, record, &python))
		return 0;
	key[count++] = record->frame_count | (uint64_t)python.count << 32;
	key[count++] = record->flags;
	for (uint32_t i = 0; i < record->frame_count; i++)
		key[count++] = record->frames[i];
	for (uint32_t i = 0; i < record->frame_count; i += 2)
		key[count++] =
			modules[i] | (i + 1 < record->frame_count ? modules[i + 1] << 32 : 0);
	for (uint32_t i = 0; i < python.count; i++)
		key[count++] = python.ids[i] << 16 | python.places[i];
	id = recorder_id(rec, &rec->stacks, key, count * sizeof(*key), XT_KIND_STACK, count,
			 &table);
	if (table)
		xt_write_stack(table, &(struct xt_row_stack){
					      .id = id,
					      .flags = record->flags,
					      .seen_ns = record->seen_ns,
					      .frames = {record->frames, record->frame_count},
					      .python = {python.ids, python.count},
					      .places = {python.places, python.count},
					      .modules = {modules, record->frame_count},
				      });
	return id;
}

static void take_stack(struct recorder *rec, struct thread_buffer *tb,
		       struct xt_record_stack *record)
{
	uint64_t modules[XT_STACK_FRAMES_MAX];
	uint32_t id = 0;

	if (record->frame_count > XT_STACK_FRAMES_MAX || record->stack_slot >= XT_STACK_SLOT_COUNT)
		return;
	/* If the log is full, the slot has no stack. */
	if (!recorder_is_full(rec)) {
		if (find_modules(tb, record, modules))
			id = intern_stack(rec, record, modules);
		rec->stacks_lost += !id;
		tb->definitions_lost |= !id;
	}
	tb->slot_stack_id[record->stack_slot] = id;
	if (tb->slots_changed <= record->stack_slot)
		tb->slots_changed = record->stack_slot + 1;
	tb->slots_used = larger(tb->slots_used, tb->slots_changed);
}

static uint32_t slot_stack(const struct thread_buffer *tb, uint32_t slot)
{
	return slot < XT_STACK_SLOT_COUNT ? tb->slot_stack_id[slot] : 0;
}

static uint64_t autograd_id(const struct thread_buffer *tb,
			    const struct xt_autograd_state *autograd)
{
	return autograd && autograd->slot < XT_AUTOGRAD_SLOT_COUNT
		       ? tb->slot_autograd_id[autograd->slot]
		       : 0;
}

/* Returns whether the thread is now known to run nodes, and was not before. */
static bool take_autograd(struct recorder *rec, struct thread_buffer *tb,
			  const struct xt_record_autograd *record)
{
	bool is_first = !tb->runs_nodes && record->type_bytes;

	if (record->slot >= XT_AUTOGRAD_SLOT_COUNT)
		return false;
	tb->runs_nodes |= is_first;
	tb->slot_autograd_id[record->slot] =
		recorder_is_full(rec)
			? 0
			: record_autograd(rec, record, slot_stack(tb, record->stack_slot));
	tb->autograd_changed = true;
	return is_first;
}

/* The node, or with a graph_exec an update of it. */
static void take_node(struct recorder *rec, struct thread_buffer *tb,
		      const struct xt_record_node *record)
{
	enum xt_kind kind = record->graph_exec ? XT_KIND_GRAPH_UPDATE : XT_KIND_GRAPH_NODE;
	struct xt_table *table = recorder_table(rec, kind, 0);
	uint32_t stack_id = slot_stack(tb, record->stack_slot);

	if (!table) {
		rec->nodes_lost++;
		return;
	}
	rec->nodes_written++;
	if (record->graph_exec)
		xt_put_node_update(table, record, tb->known_thread_id, stack_id);
	else
		xt_put_node(table, record, tb->known_thread_id, stack_id,
			    autograd_id(tb, xt_record_node_autograd(record)));
}

static uint32_t payload_values(struct recorder *rec, const struct xt_record_range *record)
{
	char values[VALUES_BYTES_MAX];

	if (!record->payload_bytes)
		return 0;
	return recorder_string(rec, values, nvtx_payload_values(record, values));
}

static void take_range(struct recorder *rec, struct thread_buffer *tb,
		       const struct xt_record_range *record)
{
	const char *domain = nvtx_domain_name(record->domain);
	const struct xt_range_texts texts = {
		.domain = recorder_string(rec, domain, strlen(domain)),
		.text = recorder_string(rec, record->text, record->text_bytes),
		.values = payload_values(rec, record),
	};
	bool has_texts = (texts.text || !record->text_bytes) && (texts.domain || !domain[0]) &&
			 (texts.values || !record->payload_bytes);
	struct xt_table *table = has_texts ? recorder_table(rec, XT_KIND_RANGE, 0) : NULL;
	uint32_t triggers = snapshot_triggers_of_range(record->text, record->text_bytes);
	struct open_range closed = {0};

	if (!note_range(&rec->open_ranges, record, tb->known_thread_id, triggers, &closed)) {
		rec->open_ranges.ignored_count++;
		return;
	}
	if (closed.triggers)
		snapshot_triggers_range_end(rec, closed.triggers,
					    record->time_ns - closed.start_ns);
	if (record->domain)
		recorder_crash_buffer_name(rec, XT_NAME_DOMAIN, record->domain, domain,
					   strlen(domain));
	if (!table) {
		rec->ranges_lost++;
		return;
	}
	rec->ranges_written++;
	xt_put_range(table, record, tb->known_thread_id, slot_stack(tb, record->stack_slot),
		     &texts);
}

void record_range_ends(struct recorder *rec)
{
	while (rec->open_ranges.count) {
		const struct open_range open = rec->open_ranges.rows[--rec->open_ranges.count];
		const struct xt_record_range end = {
			.operation = open.is_start ? XT_RANGE_END : XT_RANGE_POP,
			.time_ns = monotonic_ns(),
			.key = open.key,
			.domain = open.domain,
		};
		const char *domain = nvtx_domain_name(open.domain);
		const struct xt_range_texts texts = {
			.domain = recorder_string(rec, domain, strlen(domain))};
		struct xt_table *table = recorder_table(rec, XT_KIND_RANGE, 0);

		if (!table)
			continue;
		rec->ranges_written++;
		xt_put_range(table, &end, open.thread_id, 0, &texts);
		rec->open_ranges.ended_count++;
	}
	rec->open_ranges.had_stop = true;
}

void record_ranges_restart(struct recorder *rec)
{
	rec->open_ranges.had_stop = true;
	rec->open_ranges.key_before = nvtx_last_key();
}

static void take_call(struct recorder *rec, struct thread_buffer *tb,
		      const struct xt_record_call *record)
{
	struct xt_table *table = recorder_table(rec, XT_KIND_CALL, 0);
	uint32_t stack_id;

	if (!table) { /* out of memory */
		rec->calls.write_failed++;
		return;
	}
	rec->calls.pending++;
	if (record->result || tb->failed_alloc_ns)
		snapshot_triggers_call(rec, tb, record);
	suppressed_ids_remove(&rec->skipped, record->correlation_id);
	stack_id = slot_stack(tb, record->stack_slot);
	if (api_makes_kernels(record->api)) {
		rec->launches++;
		snapshot_triggers_launch(rec, tb->known_thread_id, stack_id, record->enter_ns);
	}
	xt_put_call(table, record, tb->known_thread_id, stack_id,
		    autograd_id(tb, xt_record_call_autograd(record)));
}

static void drain(struct recorder *rec, struct thread_buffer *tb, uint64_t end)
{
	while (tb->read_pos < end) {
		uint32_t place = tb->read_pos & (RING_DATA_BYTES - 1);
		struct xt_record *record = (struct xt_record *)(tb->data + place);

		switch (record->type) {
		case XT_RECORD_CALL:
			take_call(rec, tb, (const struct xt_record_call *)record);
			break;
		case XT_RECORD_STACK:
			take_stack(rec, tb, (struct xt_record_stack *)record);
			break;
		case XT_RECORD_AUTOGRAD:
			if (take_autograd(rec, tb, (const void *)record)) {
				/* Its nodes follow. Drain them after the other rings. */
				tb->was_drained = 0;
				end = 0;
			}
			break;
		case XT_RECORD_MODULE:
			take_module(rec, tb, (const struct xt_record_module *)record);
			break;
		case XT_RECORD_NODE:
			if (recorder_is_full(rec))
				rec->nodes_beyond_size++;
			else
				take_node(rec, tb, (const void *)record);
			break;
		case XT_RECORD_NODE_NAME:
			if (!recorder_is_full(rec))
				record_node_name(rec, (const void *)record);
			break;
		case XT_RECORD_RANGE:
			if (recorder_is_full(rec))
				rec->ranges_beyond_size++;
			else
				take_range(rec, tb, (const struct xt_record_range *)record);
			break;
		case XT_RECORD_SKIP:
			rec->skipped_beyond_size += rec->size_limit.state >= SIZE_PAUSED;
			suppressed_ids_add(&rec->skipped,
					   ((const struct xt_record_skip *)record)->correlation_id);
			break;
		case XT_RECORD_SHUTDOWN_DROP:
			suppressed_ids_add(&rec->shutdown_dropped,
					   ((const struct xt_record_skip *)record)->correlation_id);
			break;
		case XT_RECORD_SWITCH:
			record_switch(rec, ((const struct xt_record_switch *)record)->time_ns,
				      ((const struct xt_record_switch *)record)->is_on,
				      XT_SWITCH_ASKED);
			break;
		default: /* XT_RECORD_PAD */
			tb->read_pos += RING_DATA_BYTES - place;
			continue;
		}
		tb->read_pos += record->bytes;
	}
}

#define THREAD_BUFFERS_ASKED_AT_ONCE 64

/* Frees the buffer of an ended thread once its ring is in the file. */
static void retire_thread_buffer(struct recorder *rec, struct thread_buffer *tb, uint32_t index)
{
	if (!tb->owner_exited) {
		/* Each check is a system call, so check only some of many threads per round. */
		uint32_t stride = 1 + thread_buffer_count() / THREAD_BUFFERS_ASKED_AT_ONCE;

		if (index % stride == rec->rounds % stride)
			tb->owner_exited = thread_buffer_is_orphaned(tb);
		return; /* it may have committed more after the drain */
	}
	if (ring_written(tb) != tb->read_pos || tb->ring->free_pos != tb->read_pos)
		return;
	tb->owner_exited = tb->runs_nodes = false;
	tb->known_thread_id = 0;
	tb->within =
		THREAD_BUFFER_IDLE; /* it may have ended inside a callback, by pthread_exit() */
	thread_buffer_shrink(tb);
	__atomic_store_n(&tb->ring->thread_id, 0, __ATOMIC_RELAXED);
	atomic_store_explicit(&tb->state, THREAD_BUFFER_FREE, memory_order_release);
}

/*
 * The share of the ring that waits for a flush, in percent. Widens a ring that fills quickly. While
 * the log cannot be written, unread events count too.
 */
static uint32_t ring_percent(const struct recorder *rec, struct thread_buffer *tb)
{
	uint32_t window = tb->window_ready;
	uint32_t used = rec->write_error ? (uint32_t)(ring_written(tb) - tb->ring->free_pos)
					 : thread_buffer_used_bytes(tb);

	if (used > window / 2)
		thread_buffer_widen(tb);
	return (uint32_t)((uint64_t)used * 100 / window);
}

/* Events wait in the ring until their thread has a row. */
static bool knows_thread(struct recorder *rec, struct thread_buffer *tb, uint32_t thread_id)
{
	if (thread_id == tb->known_thread_id)
		return true;
	tb->known_thread_id = thread_id;
	if (recorder_is_full(rec))
		return true;
	if (!record_thread(rec, tb)) {
		tb->known_thread_id = 0;
		return false;
	}
	rec->threads_seen++;
	return true;
}

/* Drains one ring. Returns its ring_percent(). */
static uint32_t drain_ring(struct recorder *rec, struct thread_buffer *tb, uint32_t index)
{
	uint64_t end;

	if (atomic_load(&tb->state) == THREAD_BUFFER_INHERITED)
		return 0;
	end = tb->runs_nodes ? tb->seen_pos : ring_written(tb);
	if (!__atomic_load_n(&tb->ring->thread_id, __ATOMIC_ACQUIRE))
		return 0;
	if (ring_written(tb) == tb->read_pos)
		retire_thread_buffer(rec, tb, index);
	else if (!rec->write_error && knows_thread(rec, tb, tb->ring->thread_id))
		drain(rec, tb, end);
	return ring_percent(rec, tb);
}

/*
 * The merge needs a launch of a forward pass before those of its backward pass. So rings of threads
 * that run autograd nodes are drained last, up to where they were before the others.
 */
uint32_t record_calls(struct recorder *rec)
{
	struct thread_buffer *tb;
	uint32_t fullest = 0;

	rec->rounds++;
	for (uint32_t i = 0; (tb = thread_buffer_next(&i));)
		tb->seen_pos = ring_written(tb);
	for (int runs_nodes = 0; runs_nodes <= 1; runs_nodes++)
		for (uint32_t i = 0; (tb = thread_buffer_next(&i));) {
			if (tb->was_drained == rec->rounds || (tb->runs_nodes && !runs_nodes))
				continue;
			tb->was_drained = rec->rounds;
			fullest = larger(fullest, drain_ring(rec, tb, i));
		}
	return fullest;
}

/* Interns a tuple of numbers and writes a row if it is new. 0 if out of memory. */
static uint32_t tuple_id(struct recorder *rec, struct intern *known, enum xt_kind kind,
			 const uint32_t *members, uint32_t member_count)
{
	struct xt_table *table;
	uint32_t id =
		recorder_id(rec, known, members, member_count * sizeof(*members), kind, 0, &table);

	if (table)
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
