/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the log once. Memory is bounded by the size of the crash buffer, not of the log. Each row
 * is looked up among the crash buffer's records, and the match is marked.
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

static int compare_calls(const void *a, const void *b, void *rows)
{
	const struct recovery_work *x = (const struct recovery_work *)rows + *(const uint32_t *)a;
	const struct recovery_work *y = (const struct recovery_work *)rows + *(const uint32_t *)b;

	return compare_u32(&x->gpu.correlation_id, &y->gpu.correlation_id);
}

/* Indexes work by correlation id. Call it once all work is read. 0 or -ENOMEM. */
static int recovery_index_calls(struct recovery *recovery)
{
	recovery->work_by_call = calloc(recovery->work_count + 1, sizeof(*recovery->work_by_call));
	if (!recovery->work_by_call)
		return -ENOMEM;
	for (size_t i = 0; i < recovery->work_count; i++)
		recovery->work_by_call[i] = (uint32_t)i;
	qsort_r(recovery->work_by_call, recovery->work_count, sizeof(*recovery->work_by_call),
		compare_calls, recovery->work);
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
	if (!recovery_grow(&recovery->switches, &recovery->switch_capacity, recovery->switch_count,
			   sizeof(*recovery->switches))) {
		recovery->error = -ENOMEM;
		return;
	}
	recovery->switches[recovery->switch_count++] = (struct recovery_switch){time_ns, is_on};
}

COMPARE_BY(compare_switches, struct recovery_switch, UP(time_ns) UP(is_on))

void recovery_index_switches(struct recovery *recovery)
{
	if (recovery->switch_count)
		qsort(recovery->switches, recovery->switch_count, sizeof(*recovery->switches),
		      compare_switches);
}

bool recovery_is_skipped(const struct recovery *recovery, const struct recovery_work *work)
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
	qsort_r(scan->work_order, count, sizeof(*scan->work_order), compare_places, recovery->work);
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
	if (*value < to)
		*value = to;
}

static void note_time(struct scan *scan, uint64_t ns)
{
	raise_to(&scan->recovery->last_ns, ns);
}

static int read_account(struct scan *scan, const struct xt_row_account *row)
{
	struct recovery *recovery = scan->recovery;
	struct recovery_account *account = recovery->accounts;
	struct xt_bytes name = row->name;
	size_t i = 0;

	if (name.length >= sizeof(account->name) || !name.length)
		return 0;
	while (i < recovery->account_count &&
	       (strlen(account[i].name) != name.length ||
		memcmp(account[i].name, name.data, name.length) != 0))
		i++;
	if (i == RECOVERY_ACCOUNTS_MAX)
		return 0;
	if (i == recovery->account_count) {
		memcpy(account[i].name, name.data, name.length);
		recovery->account_count++;
	}
	account[i].value = row->value;
	return 0;
}

uint64_t recovery_account(const struct recovery *recovery, const char *name)
{
	for (size_t i = 0; i < recovery->account_count; i++)
		if (!strcmp(recovery->accounts[i].name, name))
			return recovery->accounts[i].value;
	return 0;
}

static int read_clock(struct scan *scan, const struct xt_row_clock *row)
{
	note_time(scan, row->monotonic_ns);
	return 0;
}

static int read_thread(struct scan *scan, const struct xt_row_thread *row)
{
	struct recovery_ring *ring = ring_of(scan, row->id);

	if (ring)
		ring->has_thread_row = true;
	if (row->id >= RECOVERY_THREAD_ID_MAX)
		return 0;
	if (!recovery_grow(&scan->has_thread, &scan->has_thread_capacity, row->id, 1))
		return -ENOMEM;
	scan->recovery->thread_count += !scan->has_thread[row->id];
	scan->has_thread[row->id] = 1;
	return 0;
}

static int read_stream(struct scan *scan, const struct xt_row_stream *row)
{
	struct recovery *recovery = scan->recovery;
	const uint32_t place[3] = {(uint32_t)row->device, (uint32_t)row->context,
				   (uint32_t)row->stream};
	bool is_new;
	uint32_t key;

	if (row->id >= STREAM_IDS_MAX)
		return 0;
	key = interner_id(&recovery->streams, place, sizeof(place), &is_new);
	if (!key ||
	    !recovery_grow(&recovery->stream_ids, &recovery->stream_ids_capacity, key,
			   sizeof(*recovery->stream_ids)) ||
	    !recovery_grow(&scan->stream_keys, &scan->stream_keys_capacity, row->id,
			   sizeof(*scan->stream_keys)))
		return -ENOMEM;
	recovery->stream_ids[key] = row->id;
	scan->stream_keys[row->id] = key;
	return 0;
}

static int read_call(struct scan *scan, const struct xt_row_call *row)
{
	struct recovery_ring *ring = ring_of(scan, row->thread);
	uint64_t exit_ns = row->enter_ns + row->duration_ns;

	if (exit_ns < row->enter_ns) /* not written by a tracer */
		return 0;
	note_time(scan, exit_ns);
	recovery_note_call(scan->recovery, (uint32_t)row->correlation);
	if (!ring)
		return 0;
	raise_to(&ring->last_exit_ns, exit_ns);
	for (uint32_t i = 0; i < ring->header.open_count; i++)
		if (ring->header.open_calls[i].enter_ns == row->enter_ns &&
		    ring->header.open_calls[i].correlation_id == row->correlation)
			ring->is_open_call_in_log[i] = true;
	return 0;
}

static int read_switch(struct scan *scan, const struct xt_row_switch *row)
{
	recovery_note_switch(scan->recovery, row->time_ns, row->is_on != 0);
	return 0;
}

static int read_range(struct scan *scan, const struct xt_row_range *row)
{
	struct recovery_ring *ring = ring_of(scan, row->thread);

	note_time(scan, row->time_ns);
	if (ring)
		raise_to(&ring->last_range_ns, row->time_ns);
	return 0;
}

static int note_node(struct scan *scan, uint64_t thread, uint64_t time_ns)
{
	struct recovery_ring *ring = ring_of(scan, thread);

	note_time(scan, time_ns);
	if (ring)
		raise_to(&ring->last_node_ns, time_ns);
	return 0;
}

static int read_node(struct scan *scan, const struct xt_row_graph_node *row)
{
	return note_node(scan, row->thread, row->time_ns);
}

static int read_update(struct scan *scan, const struct xt_row_graph_update *row)
{
	return note_node(scan, row->thread, row->time_ns);
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
	size_t count = scan->recovery->work_count, first = 0, end = count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (compare(&work[scan->work_order[middle]].gpu, row) < 0)
			first = middle + 1;
		else
			end = middle;
	}
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
static int read_work(struct scan *scan, const struct xt_chunk *chunk)
{
	const struct xt_columns_copy columns = xt_columns_copy(chunk);

	for (uint32_t r = 0; scan->recovery->work_count && r < xt_chunk_rows(chunk); r++) {
		const struct xt_row_copy row = xt_read_copy(&columns, r);

		mark_work(scan, xt_chunk_kind(chunk), &row);
	}
	return 0;
}

static int read_memory(struct scan *scan, const struct xt_row_memory *row)
{
	mark(scan, &(struct xt_gpu_work){
			   .kind = XT_KIND_MEMORY,
			   .correlation_id = (uint32_t)row->correlation,
			   .start_ns = row->time_ns,
			   .place = {(uint32_t)row->device, (uint32_t)row->kind,
				     (uint32_t)row->operation},
			   .address = row->address,
		   });
	return 0;
}

/* For each kind, the column that defines ids. Ids start at 1. */
static const unsigned id_columns[XT_KIND_COUNT] = {
	[XT_KIND_STRING] = XT_STRING_ID,	 [XT_KIND_STACK] = XT_STACK_ID,
	[XT_KIND_AUTOGRAD] = XT_AUTOGRAD_ID,	 [XT_KIND_MODULE] = XT_MODULE_ID,
	[XT_KIND_STREAM] = XT_STREAM_ID,	 [XT_KIND_SHAPE] = XT_SHAPE_ID,
	[XT_KIND_COPY_SHAPE] = XT_COPY_SHAPE_ID, [XT_KIND_PYTHON_FRAME] = XT_PYTHON_FRAME_ID,
};

XT_DEFINE_ROWS_READER(read_accounts, account, struct scan, read_account)
XT_DEFINE_ROWS_READER(read_clocks, clock, struct scan, read_clock)
XT_DEFINE_ROWS_READER(read_threads, thread, struct scan, read_thread)
XT_DEFINE_ROWS_READER(read_streams, stream, struct scan, read_stream)
XT_DEFINE_ROWS_READER(read_calls, call, struct scan, read_call)
XT_DEFINE_ROWS_READER(read_ranges, range, struct scan, read_range)
XT_DEFINE_ROWS_READER(read_nodes, graph_node, struct scan, read_node)
XT_DEFINE_ROWS_READER(read_updates, graph_update, struct scan, read_update)
XT_DEFINE_ROWS_READER(read_memories, memory, struct scan, read_memory)
XT_DEFINE_ROWS_READER(read_switches, switch, struct scan, read_switch)

static int (*const readers[XT_KIND_COUNT])(struct scan *, const struct xt_chunk *) = {
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

static int read_chunk(struct scan *scan, const struct xt_chunk *chunk)
{
	enum xt_kind kind = xt_chunk_kind(chunk);
	const uint64_t *ids = id_columns[kind] ? xt_chunk_u64(chunk, id_columns[kind]) : NULL;

	scan->recovery->row_count[kind] += xt_chunk_rows(chunk);
	for (uint32_t row = 0; ids && row < xt_chunk_rows(chunk); row++)
		if (ids[row] < ID_END)
			raise_to(&scan->recovery->last_id[kind], ids[row]);
	return readers[kind] ? readers[kind](scan, chunk) : 0;
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
		while (!error && (chunk = xt_reader_next(reader, 0)))
			error = read_chunk(&scan, chunk);
		if (!error && xt_reader_refused(reader, why))
			error = -EFBIG;
		recovery->was_closed = xt_reader_damage(reader)->closed;
	}
	xt_reader_close(reader);
	free_all(scan.ring_of_thread, scan.work_order, scan.like_marked, scan.same_marked,
		 scan.stream_keys, scan.has_thread);
	return error;
}
