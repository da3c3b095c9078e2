/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the log once, then builds the rows that it lacks: tables, interned ids, GPU work and
 * accounts. New ids follow those of the log. Memory is bounded by the size of the crash buffer,
 * not of the log. Each row is looked up among the crash buffer's records, and the match is marked.
 *
 * The list of calls that were made while recording was paused died with the process. But every
 * other call has a row in the log or a record in a ring.
 */
#include "log/recover/recover_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/read/rows.h"
#include "log/write/event_rows.h"
#include "xtrace/ring_accounts.h"

static void fail(struct recovery *recovery, int error)
{
	if (!recovery->error)
		recovery->error = error;
}

/* Makes room for item `index` in an array whose new items are zero. Fails if out of memory. */
static bool make_room(struct recovery *recovery, void *array, size_t *capacity, size_t index,
		      size_t item_bytes)
{
	int error = grow_bytes(array, capacity, index + 1, item_bytes);

	if (error)
		fail(recovery, error);
	return !error;
}

COMPARE_INDEXES_BY(compare_calls, struct recovery_work, UP(gpu.correlation_id))

/* Indexes work by correlation id. Call it once all work is read. 0 or -ENOMEM. */
static int recovery_index_calls(struct recovery *recovery)
{
	recovery->work_by_call = calloc(recovery->work_count + 1, sizeof(*recovery->work_by_call));
	if (!recovery->work_by_call)
		return -ENOMEM;
	for (size_t i = 0; i < recovery->work_count; i++)
		recovery->work_by_call[i] = (uint32_t)i;
	SORT_BY(recovery->work_by_call, recovery->work_count, compare_calls, recovery->work);
	return 0;
}

void recovery_note_call(struct recovery *recovery, uint32_t correlation_id)
{
	size_t low = FIRST_NOT(i, 0, recovery->work_count,
			       recovery->work[recovery->work_by_call[i]].gpu.correlation_id <
				       correlation_id);

	for (; low < recovery->work_count; low++) {
		struct recovery_work *work = &recovery->work[recovery->work_by_call[low]];

		if (work->gpu.correlation_id != correlation_id || work->has_call)
			return;
		work->has_call = true;
	}
}

void recovery_note_switch(struct recovery *recovery, uint64_t time_ns, bool is_on)
{
	if (make_room(recovery, &recovery->switches, &recovery->switch_capacity,
		      recovery->switch_count, sizeof(*recovery->switches)))
		recovery->switches[recovery->switch_count++] =
			(struct recovery_switch){time_ns, is_on};
}

COMPARE_BY(compare_switches, struct recovery_switch, UP(time_ns) UP(is_on))

/* Whether the work belongs to a call made while recording was paused. */
static bool recovery_is_skipped(const struct recovery *recovery, const struct recovery_work *work)
{
	size_t low;

	if (work->has_call || work->gpu.kind == XT_KIND_MEMORY)
		return false;
	low = FIRST_NOT(i, 0, recovery->switch_count,
			recovery->switches[i].time_ns <= work->gpu.start_ns);
	return low && !recovery->switches[low - 1].is_on;
}

#define STREAM_IDS_MAX (1u << 20)

/* No tracer assigns ids from here on. New ids follow the largest one below. */
#define ID_END (UINT64_C(1) << 32)

struct scan {
	struct recovery *recovery;
	uint32_t *ring_of_thread; /* by thread id: index in rings + 1 */
	uint32_t thread_id_end;
	uint32_t *work_order; /* indexes of recovery->work, sorted for comparison with rows */
	/*
	 * For each run of equal (or of similar) records in work_order, indexed by its first record:
	 * how many of them are marked.
	 */
	uint32_t *like_marked, *same_marked;
	uint64_t work_from_ns; /* the earliest start of any record */
	uint32_t *stream_keys; /* by XT_STREAM_ID: id in streams */
	size_t stream_keys_capacity;
	uint8_t *has_thread; /* by thread id */
	size_t has_thread_capacity;
};

/* Compares everything except the graph node. */
static int compare_like(const struct xt_gpu_work *a, const struct xt_gpu_work *b)
{
	int order = compare_u64(&a->start_ns, &b->start_ns);

	if (!order)
		order = compare_u32(&a->correlation_id, &b->correlation_id);
	if (!order)
		order = (int)a->kind - (int)b->kind;
	if (!order)
		order = compare_u64(&a->address, &b->address);
	return order ? order : memcmp(a->place, b->place, sizeof(a->place));
}

static int compare_same(const struct xt_gpu_work *a, const struct xt_gpu_work *b)
{
	int order = compare_like(a, b);

	return order ? order : compare_u64(&a->graph_node_id, &b->graph_node_id);
}

static int compare_places(const void *a, const void *b, void *work)
{
	const struct recovery_work *x = (const struct recovery_work *)work + *(const uint32_t *)a;
	const struct recovery_work *y = (const struct recovery_work *)work + *(const uint32_t *)b;

	return compare_same(&x->gpu, &y->gpu);
}

static int index_work(struct scan *scan)
{
	const struct recovery *recovery = scan->recovery;
	size_t count = recovery->work_count;

	scan->work_order = calloc(count + 1, sizeof(*scan->work_order));
	scan->like_marked = calloc(count + 1, sizeof(*scan->like_marked));
	scan->same_marked = calloc(count + 1, sizeof(*scan->same_marked));
	if (!scan->work_order || !scan->like_marked || !scan->same_marked)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		scan->work_order[i] = (uint32_t)i;
	SORT_BY(scan->work_order, count, compare_places, recovery->work);
	scan->work_from_ns = count ? recovery->work[scan->work_order[0]].gpu.start_ns : UINT64_MAX;
	return 0;
}

static int index_threads(struct scan *scan)
{
	const struct recovery *recovery = scan->recovery;

	for (size_t i = 0; i < recovery->ring_count; i++)
		if (recovery->rings[i]->header.thread_id >= scan->thread_id_end)
			scan->thread_id_end = recovery->rings[i]->header.thread_id + 1;
	scan->ring_of_thread = calloc(scan->thread_id_end + 1, sizeof(*scan->ring_of_thread));
	if (!scan->ring_of_thread)
		return -ENOMEM;
	for (size_t i = 0; i < recovery->ring_count; i++)
		scan->ring_of_thread[recovery->rings[i]->header.thread_id] = (uint32_t)i + 1;
	return 0;
}

static struct recovery_ring *ring_of(const struct scan *scan, uint64_t thread_id)
{
	uint32_t index = thread_id < scan->thread_id_end ? scan->ring_of_thread[thread_id] : 0;

	return index ? scan->recovery->rings[index - 1] : NULL;
}

static void raise_to(uint64_t *value, uint64_t to)
{
	*value = larger(*value, to);
}

static void note_time(struct scan *scan, uint64_t ns)
{
	raise_to(&scan->recovery->last_ns, ns);
}

static void read_account(struct scan *scan, const struct xt_row_account *row)
{
	struct recovery *recovery = scan->recovery;
	struct recovery_account *account = recovery->accounts;
	struct xt_bytes name = row->name;
	size_t i = 0;

	if (name.length >= sizeof(account->name) || !name.length)
		return;
	while (i < recovery->account_count &&
	       (strlen(account[i].name) != name.length ||
		memcmp(account[i].name, name.data, name.length) != 0))
		i++;
	if (i == RECOVERY_ACCOUNTS_MAX)
		return;
	if (i == recovery->account_count) {
		memcpy(account[i].name, name.data, name.length);
		recovery->account_count++;
	}
	account[i].value = row->value;
}

/* The last value of an account in the log, 0 if there is none. */
static uint64_t recovery_account(const struct recovery *recovery, const char *name)
{
	for (size_t i = 0; i < recovery->account_count; i++)
		if (!strcmp(recovery->accounts[i].name, name))
			return recovery->accounts[i].value;
	return 0;
}

static void read_clock(struct scan *scan, const struct xt_row_clock *row)
{
	note_time(scan, row->monotonic_ns);
}

static void read_thread(struct scan *scan, const struct xt_row_thread *row)
{
	struct recovery_ring *ring = ring_of(scan, row->id);

	if (ring)
		ring->has_thread_row = true;
	if (row->id >= RECOVERY_THREAD_ID_MAX)
		return;
	if (!make_room(scan->recovery, &scan->has_thread, &scan->has_thread_capacity, row->id, 1))
		return;
	scan->recovery->thread_count += !scan->has_thread[row->id];
	scan->has_thread[row->id] = 1;
}

static void read_stream(struct scan *scan, const struct xt_row_stream *row)
{
	struct recovery *recovery = scan->recovery;
	const uint32_t place[3] = {(uint32_t)row->device, (uint32_t)row->context,
				   (uint32_t)row->stream};
	bool is_new;
	uint32_t key;

	if (row->id >= STREAM_IDS_MAX)
		return;
	key = interner_id(&recovery->streams, place, sizeof(place), &is_new);
	if (!key)
		fail(recovery, -ENOMEM);
	if (!key ||
	    !make_room(recovery, &recovery->stream_ids, &recovery->stream_ids_capacity, key,
		       sizeof(*recovery->stream_ids)) ||
	    !make_room(recovery, &scan->stream_keys, &scan->stream_keys_capacity, row->id,
		       sizeof(*scan->stream_keys)))
		return;
	recovery->stream_ids[key] = row->id;
	scan->stream_keys[row->id] = key;
}

static void read_call(struct scan *scan, const struct xt_row_call *row)
{
	struct recovery_ring *ring = ring_of(scan, row->thread);
	uint64_t exit_ns = row->enter_ns + row->duration_ns;

	if (exit_ns < row->enter_ns) /* not written by a tracer */
		return;
	note_time(scan, exit_ns);
	recovery_note_call(scan->recovery, (uint32_t)row->correlation);
	if (!ring)
		return;
	raise_to(&ring->last_exit_ns, exit_ns);
	for (uint32_t i = 0; i < ring->header.open_count; i++)
		if (ring->header.open_calls[i].enter_ns == row->enter_ns &&
		    ring->header.open_calls[i].correlation_id == row->correlation)
			ring->is_open_call_in_log[i] = true;
}

static void read_switch(struct scan *scan, const struct xt_row_switch *row)
{
	recovery_note_switch(scan->recovery, row->time_ns, row->is_on != 0);
}

static void read_range(struct scan *scan, const struct xt_row_range *row)
{
	struct recovery_ring *ring = ring_of(scan, row->thread);

	note_time(scan, row->time_ns);
	if (ring)
		raise_to(&ring->last_range_ns, row->time_ns);
}

static void note_node(struct scan *scan, uint64_t thread, uint64_t time_ns)
{
	struct recovery_ring *ring = ring_of(scan, thread);

	note_time(scan, time_ns);
	if (ring)
		raise_to(&ring->last_node_ns, time_ns);
}

static void read_node(struct scan *scan, const struct xt_row_graph_node *row)
{
	note_node(scan, row->thread, row->time_ns);
}

static void read_update(struct scan *scan, const struct xt_row_graph_update *row)
{
	note_node(scan, row->thread, row->time_ns);
}

/*
 * Returns the next unmarked record that equals the row, or NULL. Each record is passed only once by
 * all rows together, however many are equal.
 */
static struct recovery_work *
next_unmarked(const struct scan *scan, const struct xt_gpu_work *row, uint32_t *marked,
	      int (*compare)(const struct xt_gpu_work *, const struct xt_gpu_work *))
{
	struct recovery_work *work = scan->recovery->work;
	size_t count = scan->recovery->work_count;
	size_t first = FIRST_NOT(i, 0, count, compare(&work[scan->work_order[i]].gpu, row) < 0);

	for (; first + marked[first] < count; marked[first]++) {
		struct recovery_work *equal = &work[scan->work_order[first + marked[first]]];

		if (compare(&equal->gpu, row))
			break;
		if (!equal->is_in_log)
			return equal;
	}
	return NULL;
}

/*
 * Marks the record that describes the same event as a row. Prefers a record with the
 * same graph node.
 */
static void mark(struct scan *scan, const struct xt_gpu_work *row)
{
	struct recovery_work *work;

	if (row->start_ns < scan->work_from_ns)
		return;
	work = next_unmarked(scan, row, scan->same_marked, compare_same);
	if (!work)
		work = next_unmarked(scan, row, scan->like_marked, compare_like);
	if (work)
		work->is_in_log = true;
}

static void mark_work(struct scan *scan, enum xt_kind kind, const struct xt_row_copy *row)
{
	struct xt_gpu_work work = {
		.kind = kind,
		.correlation_id = (uint32_t)row->correlation,
		.start_ns = row->start_ns,
		.graph_node_id = row->graph_node,
	};
	size_t bytes;

	if (row->stream >= scan->stream_keys_capacity || !scan->stream_keys[row->stream])
		return;
	memcpy(work.place,
	       interner_at(&scan->recovery->streams, scan->stream_keys[row->stream], &bytes),
	       sizeof(work.place));
	mark(scan, &work);
}

/* Kernels, copies and memsets do not differ in the columns that are read. */
static void read_work(struct scan *scan, const struct xt_chunk *chunk)
{
	const struct xt_columns_copy columns = xt_columns_copy(chunk);

	for (uint32_t r = 0; scan->recovery->work_count && r < xt_chunk_rows(chunk); r++) {
		const struct xt_row_copy row = xt_read_copy(&columns, r);

		mark_work(scan, xt_chunk_kind(chunk), &row);
	}
}

static void read_memory(struct scan *scan, const struct xt_row_memory *row)
{
	mark(scan, &(struct xt_gpu_work){
			   .kind = XT_KIND_MEMORY,
			   .correlation_id = (uint32_t)row->correlation,
			   .start_ns = row->time_ns,
			   .place = {(uint32_t)row->device, (uint32_t)row->kind,
				     (uint32_t)row->operation},
			   .address = row->address,
		   });
}

/* For each kind, the column that defines ids. Ids start at 1. */
static const unsigned id_columns[XT_KIND_COUNT] = {
	[XT_KIND_STRING] = XT_STRING_ID,	 [XT_KIND_STACK] = XT_STACK_ID,
	[XT_KIND_AUTOGRAD] = XT_AUTOGRAD_ID,	 [XT_KIND_MODULE] = XT_MODULE_ID,
	[XT_KIND_STREAM] = XT_STREAM_ID,	 [XT_KIND_SHAPE] = XT_SHAPE_ID,
	[XT_KIND_COPY_SHAPE] = XT_COPY_SHAPE_ID, [XT_KIND_PYTHON_FRAME] = XT_PYTHON_FRAME_ID,
};

XT_DEFINE_ROWS_VISITOR(read_accounts, account, struct scan, read_account)
XT_DEFINE_ROWS_VISITOR(read_clocks, clock, struct scan, read_clock)
XT_DEFINE_ROWS_VISITOR(read_threads, thread, struct scan, read_thread)
XT_DEFINE_ROWS_VISITOR(read_streams, stream, struct scan, read_stream)
XT_DEFINE_ROWS_VISITOR(read_calls, call, struct scan, read_call)
XT_DEFINE_ROWS_VISITOR(read_ranges, range, struct scan, read_range)
XT_DEFINE_ROWS_VISITOR(read_nodes, graph_node, struct scan, read_node)
XT_DEFINE_ROWS_VISITOR(read_updates, graph_update, struct scan, read_update)
XT_DEFINE_ROWS_VISITOR(read_memories, memory, struct scan, read_memory)
XT_DEFINE_ROWS_VISITOR(read_switches, switch, struct scan, read_switch)

static void (*const readers[XT_KIND_COUNT])(struct scan *, const struct xt_chunk *) = {
	[XT_KIND_ACCOUNT] = read_accounts,
	[XT_KIND_CLOCK] = read_clocks,
	[XT_KIND_THREAD] = read_threads,
	[XT_KIND_STREAM] = read_streams,
	[XT_KIND_CALL] = read_calls,
	[XT_KIND_KERNEL] = read_work,
	[XT_KIND_COPY] = read_work,
	[XT_KIND_SET] = read_work,
	[XT_KIND_RANGE] = read_ranges,
	[XT_KIND_GRAPH_NODE] = read_nodes,
	[XT_KIND_GRAPH_UPDATE] = read_updates,
	[XT_KIND_MEMORY] = read_memories,
	[XT_KIND_SWITCH] = read_switches,
};

static void read_chunk(struct scan *scan, const struct xt_chunk *chunk)
{
	enum xt_kind kind = xt_chunk_kind(chunk);
	const uint64_t *ids = id_columns[kind] ? xt_chunk_u64(chunk, id_columns[kind]) : NULL;

	scan->recovery->row_count[kind] += xt_chunk_rows(chunk);
	for (uint32_t row = 0; ids && row < xt_chunk_rows(chunk); row++)
		if (ids[row] < ID_END)
			raise_to(&scan->recovery->last_id[kind], ids[row]);
	if (readers[kind])
		readers[kind](scan, chunk);
}

/* Extends the last known time by the times in the crash buffer. */
static void note_ring_times(struct scan *scan)
{
	for (size_t i = 0; i < scan->recovery->ring_count; i++) {
		const struct recovery_ring *ring = scan->recovery->rings[i];
		struct recovery_cursor cursor = {ring, ring->header.free_pos, false};
		const struct xt_record *record;

		while ((record = recovery_next_record(&cursor)))
			if (record->type == XT_RECORD_CALL)
				note_time(scan, ((const struct xt_record_call *)record)->exit_ns);
		for (uint32_t c = 0; c < ring->header.open_count; c++)
			note_time(scan, ring->header.open_calls[c].enter_ns);
	}
}

int recovery_scan_log(struct recovery *recovery, const char *path)
{
	struct scan scan = {.recovery = recovery};
	const struct xt_chunk *chunk;
	struct xt_reader *reader = NULL;
	char why[XT_REFUSAL_BYTES];
	int error = index_work(&scan);

	if (!error)
		error = recovery_index_calls(recovery);
	if (!error)
		error = index_threads(&scan);
	if (!error) {
		enum xt_open_error open_error = xt_reader_open(path, &reader);

		if (open_error)
			error = open_error == XT_OPEN_ERRNO ? -errno : -EBADMSG;
	}
	if (!error) {
		recovery->last_ns = recovery->log_header.start_monotonic_ns;
		note_ring_times(&scan);
		while (!recovery->error && (chunk = xt_reader_next(reader, 0)))
			read_chunk(&scan, chunk);
		error = recovery->error;
		if (!error && xt_reader_refused(reader, why))
			error = -EFBIG;
		recovery->was_closed = xt_reader_damage(reader)->closed;
	}
	xt_reader_close(reader);
	free_all(scan.ring_of_thread, scan.work_order, scan.like_marked, scan.same_marked,
		 scan.stream_keys, scan.has_thread);
	return error;
}

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

	if (!text)
		fail(recovery, -ENOMEM);
	if (!text || !make_room(recovery, &recovery->text_strings, &recovery->text_strings_capacity,
				text, sizeof(*recovery->text_strings)))
		return 0;
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

	if (!key)
		fail(recovery, -ENOMEM);
	if (!key || !make_room(recovery, &recovery->stream_ids, &recovery->stream_ids_capacity, key,
			       sizeof(*recovery->stream_ids)))
		return 0;
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
	bool is_known = true;
	uint64_t shape = shape_id(recovery, work, &is_known);
	uint64_t stream = work->kind == XT_KIND_MEMORY ? 0 : stream_id(recovery, work->place);
	struct xt_table *table = recovery_table(recovery, work->kind, 0);

	if (!table)
		return;
	xt_put_work(table, work, stream, shape);
	recovery->out->rows[work->kind]++;
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
	SORT(recovery->switches, recovery->switch_count, compare_switches);
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
	uint64_t ranges = recovery->row_count[XT_KIND_RANGE] + recovery->out->rows[XT_KIND_RANGE];
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
	uint64_t written =
		recovery->row_count[XT_KIND_CALL] + out->rows[XT_KIND_CALL] + out->open_calls;
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
		{"kernels.written", rows[XT_KIND_KERNEL] + out->rows[XT_KIND_KERNEL]},
		{"copies.written", rows[XT_KIND_COPY] + out->rows[XT_KIND_COPY]},
		{"sets.written", rows[XT_KIND_SET] + out->rows[XT_KIND_SET]},
		{"memory.written", rows[XT_KIND_MEMORY] + out->rows[XT_KIND_MEMORY]},
		{"kernels.lost.size", outside[XT_CRASH_BUFFER_KERNELS_SIZE]},
		{"copies.lost.size", outside[XT_CRASH_BUFFER_COPIES_SIZE]},
		{"sets.lost.size", outside[XT_CRASH_BUFFER_SETS_SIZE]},
		{"memory.lost.size", outside[XT_CRASH_BUFFER_MEMORY_SIZE]},
		{"threads.seen", recovery->thread_count},
		{"recovered.calls", out->rows[XT_KIND_CALL]},
		{"recovered.open_calls", out->open_calls},
		{"recovered.ranges", out->rows[XT_KIND_RANGE]},
		{"recovered.nodes", out->rows[XT_KIND_GRAPH_NODE]},
		{"recovered.kernels", out->rows[XT_KIND_KERNEL]},
		{"recovered.copies", out->rows[XT_KIND_COPY]},
		{"recovered.sets", out->rows[XT_KIND_SET]},
		{"recovered.memory", out->rows[XT_KIND_MEMORY]},
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
