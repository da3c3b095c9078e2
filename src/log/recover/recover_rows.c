/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the rows of a recovery: tables, interned ids, GPU work and accounts. New ids follow those
 * of the log.
 */
#include "log/recover/recover_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "log/recover/recover_log.h"
#include "log/write/event_rows.h"
#include "xtrace/ring_accounts.h"

#define UNNAMED "[unnamed]"

/*
 * Limit for times in a buffer that CUPTI was still writing, after the last known moment. The GPU
 * may continue while the process waits.
 */
#define PLAUSIBLE_NS (UINT64_C(60) * 1000000000)

/* In the order of the chunks: a kind that defines ids precedes the kinds that use them. */
static const struct {
	enum xt_kind kind;
	uint32_t rows;
	size_t content; /* bytes or list elements */
} layout[] = {
	{XT_KIND_MODULE, 1024, 512 << 10},  {XT_KIND_THREAD, 4096, 4096},
	{XT_KIND_STRING, 4096, 1 << 20},    {XT_KIND_STREAM, 4096, 0},
	{XT_KIND_SHAPE, 8192, 0},	    {XT_KIND_PYTHON_FRAME, 8192, 0},
	{XT_KIND_STACK, 8192, 128 << 10},   {XT_KIND_AUTOGRAD, 1024, 0},
	{XT_KIND_CALL, 64 << 10, 0},	    {XT_KIND_KERNEL, 64 << 10, 0},
	{XT_KIND_COPY_SHAPE, 4096, 0},	    {XT_KIND_COPY, 16 << 10, 0},
	{XT_KIND_SET, 16 << 10, 0},	    {XT_KIND_RANGE, 16 << 10, 0},
	{XT_KIND_GRAPH_NODE, 16 << 10, 0},  {XT_KIND_GRAPH_UPDATE, 4096, 0},
	{XT_KIND_GRAPH_NODE_NAME, 4096, 0}, {XT_KIND_SWITCH, 64, 0},
	{XT_KIND_MEMORY, 16 << 10, 0},	    {XT_KIND_ACCOUNT, 512, 32 << 10},
};
#define LAYOUT_COUNT (sizeof(layout) / sizeof(layout[0]))

int recovery_open_tables(struct recovery *recovery)
{
	int error = 0;

	for (size_t i = 0; i < LAYOUT_COUNT && !error; i++)
		error = xt_table_init(&recovery->tables[layout[i].kind], layout[i].kind,
				      layout[i].rows, layout[i].content);
	recovery->first_shape_id = recovery->last_id[XT_KIND_SHAPE];
	recovery->first_copy_shape_id = recovery->last_id[XT_KIND_COPY_SHAPE];
	recovery->first_python_frame_id = recovery->last_id[XT_KIND_PYTHON_FRAME];
	return error;
}

void recovery_close_tables(struct recovery *recovery)
{
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		xt_table_free(&recovery->tables[layout[i].kind]);
}

static void fail(struct recovery *recovery, int error)
{
	if (!recovery->error)
		recovery->error = error;
}

int recovery_add_tables(struct recovery *recovery)
{
	int error = 0;

	for (size_t i = 0; i < LAYOUT_COUNT && !error; i++)
		error = xt_writer_add(recovery->writer, &recovery->tables[layout[i].kind]);
	return error;
}

struct xt_table *recovery_table(struct recovery *recovery, enum xt_kind kind, size_t content)
{
	struct xt_table *table = &recovery->tables[kind];

	if (recovery->error)
		return NULL;
	if (xt_table_has_room(table, content))
		return table;
	fail(recovery, recovery_add_tables(recovery));
	if (!recovery->error && xt_table_has_room(table, content))
		return table;
	fail(recovery, -E2BIG);
	return NULL;
}

uint64_t recovery_string(struct recovery *recovery, uint32_t text)
{
	struct xt_table *table;
	const void *bytes;
	size_t length;

	if (!text || !recovery_grow(&recovery->text_strings, &recovery->text_strings_capacity, text,
				    sizeof(*recovery->text_strings))) {
		fail(recovery, -ENOMEM);
		return 0;
	}
	bytes = interner_at(&recovery->texts, text, &length);
	if (!length || recovery->text_strings[text])
		return recovery->text_strings[text];
	table = recovery_table(recovery, XT_KIND_STRING, length);
	if (!table)
		return 0;
	recovery->text_strings[text] = ++recovery->last_id[XT_KIND_STRING];
	xt_write_string(table,
			&(struct xt_row_string){recovery->text_strings[text], {bytes, length}});
	return recovery->text_strings[text];
}

static uint64_t text_id(struct recovery *recovery, const char *text)
{
	bool is_new;

	return recovery_string(recovery,
			       interner_id(&recovery->texts, text, strlen(text), &is_new));
}

uint64_t recovery_name(struct recovery *recovery, enum xt_name_of of, uint64_t key, bool *is_known)
{
	const uint32_t what[3] = {(uint32_t)of, (uint32_t)key, (uint32_t)(key >> 32)};
	uint32_t id = interner_find(&recovery->names, what, sizeof(what)), text;
	bool is_new;

	*is_known = id != 0;
	text = id ? recovery->name_texts[id]
		  : interner_id(&recovery->texts, UNNAMED, strlen(UNNAMED), &is_new);
	return recovery_string(recovery, text);
}

/* Returns the id of a tuple (xt_put_tuple()) and adds its row if it is new. */
static uint64_t tuple_id(struct recovery *recovery, struct interner *keys, enum xt_kind kind,
			 const uint32_t *members, unsigned member_count, uint64_t first_id)
{
	bool is_new;
	uint32_t key = interner_id(keys, members, member_count * sizeof(*members), &is_new);
	struct xt_table *table;

	if (!key)
		fail(recovery, -ENOMEM);
	table = key && is_new ? recovery_table(recovery, kind, 0) : NULL;
	if (table)
		xt_put_tuple(table, first_id + key, members, member_count);
	return first_id + key;
}

uint64_t recovery_python_frame(struct recovery *recovery, uint32_t name, uint32_t file,
			       uint32_t line, uint32_t first_line)
{
	const uint32_t members[] = {(uint32_t)recovery_string(recovery, name),
				    (uint32_t)recovery_string(recovery, file), line, first_line};

	return tuple_id(recovery, &recovery->python_frames, XT_KIND_PYTHON_FRAME, members, 4,
			recovery->first_python_frame_id);
}

/* Returns the log's id of a stream, or a new one. */
static uint64_t stream_id(struct recovery *recovery, const uint32_t place[3])
{
	bool is_new;
	uint32_t key = interner_id(&recovery->streams, place, 3 * sizeof(*place), &is_new);
	struct xt_table *table;

	if (!key || !recovery_grow(&recovery->stream_ids, &recovery->stream_ids_capacity, key,
				   sizeof(*recovery->stream_ids))) {
		fail(recovery, -ENOMEM);
		return 0;
	}
	table = is_new ? recovery_table(recovery, XT_KIND_STREAM, 0) : NULL;
	if (table) {
		recovery->stream_ids[key] = ++recovery->last_id[XT_KIND_STREAM];
		xt_put_tuple(table, recovery->stream_ids[key], place, 3);
	}
	return recovery->stream_ids[key];
}

static uint64_t shape_id(struct recovery *recovery, const struct xt_gpu_work *work, bool *is_known)
{
	uint32_t shape[10];

	if (work->kind == XT_KIND_COPY)
		return tuple_id(recovery, &recovery->copy_shapes, XT_KIND_COPY_SHAPE, work->like, 6,
				recovery->first_copy_shape_id);
	if (work->kind != XT_KIND_KERNEL)
		return 0;
	if (xt_gpu_work_is_graph(work))
		shape[0] = (uint32_t)text_id(recovery, XT_WHOLE_GRAPH_NAME);
	else
		shape[0] = work->name ? (uint32_t)recovery_name(recovery, XT_NAME_KERNEL,
								work->name, is_known)
				      : 0;
	memcpy(shape + 1, work->like, sizeof(work->like));
	return tuple_id(recovery, &recovery->shapes, XT_KIND_SHAPE, shape, 10,
			recovery->first_shape_id);
}

static void add_row(struct recovery *recovery, const struct xt_gpu_work *work)
{
	uint64_t *const counts[XT_KIND_COUNT] = {
		[XT_KIND_KERNEL] = &recovery->out->kernels,
		[XT_KIND_COPY] = &recovery->out->copies,
		[XT_KIND_SET] = &recovery->out->sets,
		[XT_KIND_MEMORY] = &recovery->out->memory,
	};
	bool is_known = true;
	uint64_t shape = shape_id(recovery, work, &is_known);
	uint64_t stream = work->kind == XT_KIND_MEMORY ? 0 : stream_id(recovery, work->place);
	struct xt_table *table = recovery_table(recovery, work->kind, 0);

	if (!table)
		return;
	xt_put_work(table, work, stream, shape);
	(*counts[work->kind])++;
	recovery->out->unnamed += !is_known;
}

/*
 * Whether the work has valid times. In a buffer that CUPTI has not completed, times may be half
 * written or not yet converted to our clock.
 */
static bool is_over(const struct recovery *recovery, const struct recovery_work *work)
{
	if (!work->gpu.correlation_id || !work->gpu.start_ns ||
	    work->gpu.end_ns < work->gpu.start_ns)
		return false;
	return !work->at_cupti || (work->gpu.start_ns >= recovery->log_header.start_monotonic_ns &&
				   work->gpu.end_ns <= recovery->last_ns + PLAUSIBLE_NS);
}

void recovery_add_work(struct recovery *recovery)
{
	recovery_index_switches(recovery);
	for (size_t i = 0; i < recovery->work_count && !recovery->error; i++) {
		const struct recovery_work *work = &recovery->work[i];

		if (work->is_in_log)
			continue;
		if (is_over(recovery, work) && recovery_is_skipped(recovery, work))
			recovery->out->skipped++;
		else if (is_over(recovery, work))
			add_row(recovery, &work->gpu);
		else if (work->has_call || !recovery->switch_count) {
			recovery->out
				->unfinished++; /* otherwise its call was made while recording was paused */
			recovery->out->kernels_unfinished += work->gpu.kind == XT_KIND_KERNEL;
		}
	}
}

static void add_value(struct recovery *recovery, const char *name, uint64_t value)
{
	struct xt_table *table = recovery_table(recovery, XT_KIND_ACCOUNT, strlen(name));

	if (!table)
		return;
	xt_write_account(table, &(struct xt_row_account){xt_text(name), value});
}

static void add_ring_accounts(struct recovery *recovery)
{
	uint64_t ranges = recovery->row_count[XT_KIND_RANGE] + recovery->out->ranges;
	uint64_t value = 0, before;

	for (size_t i = 0; i < sizeof(xt_ring_accounts) / sizeof(*xt_ring_accounts); i++) {
		const struct xt_ring_account *account = &xt_ring_accounts[i];
		uint64_t outside = account->outside < XT_CRASH_BUFFER_COUNTERS
					   ? recovery->crash_buffer->counters[account->outside]
					   : 0;

		before = value;
		value = larger(recovery_account(recovery, account->name),
			       recovery->counters[account->counter] + outside);
		/* `before` were seen. Each thread may have counted one that its ring lacks. */
		if (account->counter == XT_RING_RANGES_LOST && before > ranges + value &&
		    before - ranges - value <= recovery->thread_count)
			value = before - ranges;
		add_value(recovery, account->name, value);
	}
}

static void add_crash_buffer_accounts(struct recovery *recovery)
{
	for (size_t i = 0; i < sizeof(xt_crash_buffer_accounts) / sizeof(*xt_crash_buffer_accounts);
	     i++)
		add_value(recovery, xt_crash_buffer_accounts[i].name,
			  larger(recovery_account(recovery, xt_crash_buffer_accounts[i].name),
				 recovery->crash_buffer
					 ->counters[xt_crash_buffer_accounts[i].counter]));
}

#define LOST_CALLS_PREFIX "calls.lost."

struct lost_calls {
	const char *name;
	uint64_t count;
};

/* Sum of the lost-call accounts that are not among `causes`. */
static uint64_t lost_otherwise(const struct recovery *recovery, const struct lost_calls *causes,
			       size_t cause_count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < recovery->account_count; i++) {
		const struct recovery_account *account = &recovery->accounts[i];
		size_t c = 0;

		if (strncmp(account->name, LOST_CALLS_PREFIX, strlen(LOST_CALLS_PREFIX)) != 0)
			continue;
		while (c < cause_count && strcmp(account->name, causes[c].name) != 0)
			c++;
		if (c == cause_count)
			sum += account->value;
	}
	return sum;
}

/*
 * Keeps the invariant of every closed log: seen = written + lost. The crash buffer's counters are
 * newer than the last account. Calls in neither were on their way into a ring, or in a ring outside
 * the crash buffer.
 */
static void add_call_account(struct recovery *recovery)
{
	const struct xt_recovered *out = recovery->out;
	const uint64_t *rings = recovery->counters, *outside = recovery->crash_buffer->counters;
	struct lost_calls causes[] = {
		{"calls.lost.killed", 0},
		{"calls.lost.write_failed", outside[XT_CRASH_BUFFER_CALLS_WRITE_FAILED]},
		{"calls.lost.cut_off", 0},
		{"calls.lost.no_ring", outside[XT_CRASH_BUFFER_CALLS_NO_RING]},
		{"calls.lost.ring_full", rings[XT_RING_LOST_RING_FULL]},
		{"calls.lost.nested",
		 rings[XT_RING_LOST_NESTED] + outside[XT_CRASH_BUFFER_CALLS_REENTERED]},
		{"calls.lost.leaving", recovery->shutdown_drop_count},
		{"calls.lost.size",
		 outside[XT_CRASH_BUFFER_CALLS_SIZE] + recovery->size_drop_count},
		{"calls.lost.after_end", outside[XT_CRASH_BUFFER_CALLS_AFTER_END]},
	};
	enum { KILLED, WRITE_FAILED, CUT_OFF, NO_RING, COUNT = sizeof(causes) / sizeof(*causes) };
	uint64_t written = recovery->row_count[XT_KIND_CALL] + out->calls + out->open_calls;
	uint64_t lost = lost_otherwise(recovery, causes, COUNT), seen;
	unsigned unknown; /* the cause of calls without another explanation */

	for (size_t c = 0; c < COUNT; c++) {
		causes[c].count =
			larger(recovery_account(recovery, causes[c].name), causes[c].count);
		lost += causes[c].count;
	}
	seen = larger(recovery_account(recovery, "calls.seen"),
		      rings[XT_RING_CALLS_SEEN] + causes[NO_RING].count +
			      outside[XT_CRASH_BUFFER_CALLS_REENTERED] +
			      outside[XT_CRASH_BUFFER_CALLS_UNBACKED] +
			      outside[XT_CRASH_BUFFER_CALLS_AFTER_END] +
			      recovery->size_drop_count) +
	       out->open_calls - recovery->returning_count;
	seen = larger(seen, written + lost);
	unknown = out->log_is_cut			     ? CUT_OFF
		  : out->ending == XT_CRASH_BUFFER_NO_ENDING ? KILLED
							     : WRITE_FAILED;
	causes[unknown].count += seen - written - lost;
	add_value(recovery, "calls.seen", seen);
	add_value(recovery, "calls.written", written);
	for (size_t c = 0; c < COUNT; c++)
		add_value(recovery, causes[c].name, causes[c].count);
}

void recovery_add_account(struct recovery *recovery)
{
	const struct xt_recovered *out = recovery->out;
	const uint64_t *rows = recovery->row_count, *outside = recovery->crash_buffer->counters;
	const struct {
		const char *name;
		uint64_t value;
	} values[] = {
		{"kernels.written", rows[XT_KIND_KERNEL] + out->kernels},
		{"copies.written", rows[XT_KIND_COPY] + out->copies},
		{"sets.written", rows[XT_KIND_SET] + out->sets},
		{"memory.written", rows[XT_KIND_MEMORY] + out->memory},
		{"kernels.lost.size", outside[XT_CRASH_BUFFER_KERNELS_SIZE]},
		{"copies.lost.size", outside[XT_CRASH_BUFFER_COPIES_SIZE]},
		{"sets.lost.size", outside[XT_CRASH_BUFFER_SETS_SIZE]},
		{"memory.lost.size", outside[XT_CRASH_BUFFER_MEMORY_SIZE]},
		{"threads.seen", recovery->thread_count},
		{"recovered.calls", out->calls},
		{"recovered.open_calls", out->open_calls},
		{"recovered.ranges", out->ranges},
		{"recovered.nodes", out->nodes},
		{"recovered.kernels", out->kernels},
		{"recovered.copies", out->copies},
		{"recovered.sets", out->sets},
		{"recovered.memory", out->memory},
		{"recovered.unnamed", out->unnamed},
		{"recovered.unfinished", out->unfinished},
		{"recovered.kernels_unfinished", out->kernels_unfinished},
		{"recovered.areas_damaged", out->areas_damaged},
		{"recovered.areas_unknown", out->areas_unknown},
	};

	add_call_account(recovery);
	/* Compaction can make it smaller than before. */
	add_value(recovery, "log.bytes", xt_writer_file_bytes(recovery->writer));
	add_value(recovery, "records.skipped",
		  recovery_account(recovery, "records.skipped") + out->skipped);
	add_ring_accounts(recovery);
	add_crash_buffer_accounts(recovery);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		add_value(recovery, values[i].name,
			  larger(recovery_account(recovery, values[i].name), values[i].value));
}
