/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the rows of chunks to the totals, one function for each kind of chunk.
 */
#include "live/totals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/call_result.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/read/rows.h"
#include "log/base/script_name.h"
#include "xtrace/account.h"

#define IDS_MAX (1u << 20)

static int ids_put(struct live_ids *ids, uint64_t id, uint8_t value)
{
	if (id >= IDS_MAX)
		return 0;
	if (grow(&ids->values, &ids->capacity, (size_t)id + 1, 1))
		return -ENOMEM;
	ids->values[id] = value;
	return 0;
}

static uint8_t ids_get(const struct live_ids *ids, uint64_t id)
{
	return id < ids->capacity ? ids->values[id] : 0;
}

/* NULL if out of memory. */
static struct live_gpu *gpu_at(struct live_totals *totals, unsigned gpu)
{
	if (!totals->gpus[gpu])
		totals->gpus[gpu] = calloc(1, sizeof(*totals->gpus[gpu]));
	return totals->gpus[gpu];
}

static unsigned gpu_number(uint64_t device)
{
	return device < LIVE_GPU_UNKNOWN ? (unsigned)device : LIVE_GPU_UNKNOWN;
}

/*
 * "TIME GPU:BYTES ...": what was allocated when the log was compacted. A log that was compacted
 * several times has older ones, too, which do not count if later events were counted already.
 */
static int set_allocated(struct live_totals *totals, const char *text)
{
	uint64_t time_ns;
	char *next;

	time_ns = strtoull(text, &next, 10);
	if (time_ns <= totals->memory.newest_ns)
		return 0;
	totals->memory.newest_ns = time_ns;
	totals->memory.has_before = true;
	while (*next == ' ') {
		unsigned gpu = gpu_number(strtoull(next + 1, &next, 10));

		if (*next != ':' || !gpu_at(totals, gpu))
			return *next == ':' ? -ENOMEM : 0;
		totals->gpus[gpu]->allocated_bytes = strtoull(next + 1, &next, 10);
	}
	return 0;
}

static void set_text(char *out, size_t out_bytes, struct xt_bytes text)
{
	if (text.length)
		snprintf(out, out_bytes, "%.*s", (int)text.length, text.data);
}

static int add_meta(struct live_totals *totals, const struct xt_row_meta *row)
{
	char allocated[1024] = "";
	int error = 0;

	if (xt_bytes_are(row->key, "log.allocated")) {
		set_text(allocated, sizeof(allocated), row->value);
		error = set_allocated(totals, allocated);
	}
	totals->accounts.is_flight_recorder |= xt_bytes_are(row->key, "log.flight_recorder");
	if (xt_bytes_are(row->key, "process.exe"))
		set_text(totals->program, sizeof(totals->program), row->value);
	if (xt_bytes_are(row->key, "process.cmdline"))
		set_text(totals->command_line, sizeof(totals->command_line), row->value);
	if (*totals->program)
		xt_script_title(totals->command, sizeof(totals->command), totals->program,
				totals->command_line);
	return error;
}

struct live_account *live_account(struct live_accounts *accounts, struct xt_bytes name)
{
	struct live_account *row = accounts->rows, *end = row + accounts->count;

	if (!name.length || name.length >= sizeof(row->name))
		return NULL;
	while (row < end && !xt_bytes_are(name, row->name))
		row++;
	if (accounts->count == LIVE_ACCOUNTS_MAX && row == end)
		return NULL;
	if (row == end) {
		*row = (struct live_account){0};
		memcpy(row->name, name.data, name.length);
		accounts->count++;
	}
	return row;
}

/* A compacted log repeats older values, so the largest counts. */
static int add_account(struct live_totals *totals, const struct xt_row_account *row)
{
	struct live_account *account = live_account(&totals->accounts, row->name);

	if (account && row->value > account->value)
		account->value = row->value;
	return 0;
}

static int add_stream(struct live_totals *totals, const struct xt_row_stream *row)
{
	return ids_put(&totals->tables.gpu_of_stream, row->id,
		       (uint8_t)(gpu_number(row->device) + 1));
}

static int add_copy_shape(struct live_totals *totals, const struct xt_row_copy_shape *row)
{
	return ids_put(&totals->tables.kind_of_copy, row->id,
		       row->kind < LIVE_COPY_KINDS ? (uint8_t)row->kind : 0);
}

static int add_api(struct live_totals *totals, const struct xt_row_api *row)
{
	char name[128] = "";
	int error = ids_put(&totals->tables.class_of_api, row->id,
			    row->class < XT_API_CLASSES ? (uint8_t)row->class : XT_API_OTHER);

	set_text(name, sizeof(name), row->name);
	return error ? error
		     : ids_put(&totals->tables.state_of_api, row->id,
			       (uint8_t)(thread_state_of_call((uint32_t)row->class, name) + 1));
}

static int add_switch(struct live_totals *totals, const struct xt_row_switch *row)
{
	return live_gaps_add_switch(&totals->gaps,
				    &(struct live_switch){row->time_ns, row->is_on != 0});
}

static int add_clock(struct live_totals *totals, const struct xt_row_clock *row)
{
	totals->clock_ns = larger(totals->clock_ns, row->monotonic_ns);
	return 0;
}

static int add_node(struct live_totals *totals, const struct xt_row_graph_node *row)
{
	return live_calls_add_node(&totals->gaps.calls,
				   &(struct live_node){row->time_ns, (uint32_t)row->thread});
}

/* UINT64_MAX if it would overflow, as only in damaged logs. */
static uint64_t end_of(uint64_t start_ns, uint64_t duration_ns)
{
	return duration_ns < UINT64_MAX - start_ns ? start_ns + duration_ns : UINT64_MAX;
}

static int add_call(struct live_totals *totals, const struct xt_row_call *row)
{
	uint8_t class = ids_get(&totals->tables.class_of_api, row->api);
	uint8_t state = ids_get(&totals->tables.state_of_api, row->api);
	bool is_launch = class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH;
	const struct live_call call = {
		.enter_ns = row->enter_ns,
		.exit_ns = end_of(row->enter_ns, row->duration_ns),
		.correlation = (uint32_t)row->correlation,
		.thread = (uint32_t)smaller(row->thread, UINT32_MAX),
		.is_launch = is_launch && !row->result,
	};

	totals->launch_count += is_launch;
	totals->error_count += xt_call_failed(class, row->result);
	return live_gaps_add_call(&totals->gaps, &call,
				  state ? (enum thread_state)(state - 1) : THREAD_BUSY);
}

/* Kernels, copies or memsets, which differ in no column that is read for all of them. */
struct work_columns {
	struct xt_columns_copy in;
	uint32_t row_count;
	bool are_copies;
};

static struct live_span span_of(struct live_totals *totals, const struct work_columns *work,
				uint32_t r)
{
	const struct xt_row_copy row = xt_read_copy(&work->in, r);
	struct live_work end = {.stream = (uint32_t)row.stream, .is_copy = work->are_copies};

	live_gaps_join(&totals->gaps, row.correlation, &end);
	return (struct live_span){row.start_ns, end_of(row.start_ns, row.duration_ns), end, end};
}

/* Adds the spans of all rows of one GPU to its union. Marks those rows as done. */
static int add_spans(struct live_totals *totals, const struct work_columns *work, uint32_t first)
{
	uint8_t gpu = totals->batch.gpus[first];
	size_t count = 0;

	for (uint32_t r = first; r < work->row_count; r++) {
		struct live_span *span = &totals->batch.spans[count];

		if (totals->batch.gpus[r] != gpu)
			continue;
		totals->batch.gpus[r] = UINT8_MAX;
		*span = span_of(totals, work, r);
		/* A damaged log must not cause an overflow. */
		if (span->end_ns == UINT64_MAX)
			continue;
		count++;
		if (span->end_ns > totals->gaps.newest_ns)
			totals->gaps.newest_ns = span->end_ns;
	}
	return live_spans_add(&totals->gpus[gpu]->busy, totals->batch.spans, count);
}

/* Busy time of work. batch_gpus has the GPU of each row. */
static int add_busy(struct live_totals *totals, const struct work_columns *work)
{
	int error = grow(&totals->batch.spans, &totals->batch.span_capacity, work->row_count,
			 sizeof(*totals->batch.spans));

	for (uint32_t r = 0; r < work->row_count && !error; r++)
		if (totals->batch.gpus[r] != UINT8_MAX)
			error = add_spans(totals, work, r);
	return error;
}

static struct work_columns columns_of(const struct xt_chunk *chunk)
{
	return (struct work_columns){xt_columns_copy(chunk), xt_chunk_rows(chunk),
				     xt_chunk_kind(chunk) == XT_KIND_COPY};
}

/* Finds the GPU of each row by its stream. */
static int find_gpus(struct live_totals *totals, const struct work_columns *work)
{
	int error = grow(&totals->batch.gpus, &totals->batch.gpu_capacity, work->row_count, 1);

	for (uint32_t r = 0; r < work->row_count && !error; r++) {
		uint8_t gpu = ids_get(&totals->tables.gpu_of_stream, work->in.stream[r]);

		totals->batch.gpus[r] = gpu ? gpu - 1 : LIVE_GPU_UNKNOWN;
		if (!gpu_at(totals, totals->batch.gpus[r]))
			error = -ENOMEM;
	}
	return error;
}

static int add_kernels(struct live_totals *totals, const struct xt_chunk *chunk)
{
	struct work_columns work = columns_of(chunk);
	int error = find_gpus(totals, &work);

	for (uint32_t r = 0; r < work.row_count && !error; r++)
		totals->gpus[totals->batch.gpus[r]]->kernel_count++;
	return error ? error : add_busy(totals, &work);
}

static int add_copies(struct live_totals *totals, const struct xt_chunk *chunk)
{
	struct work_columns work = columns_of(chunk);
	int error = find_gpus(totals, &work);

	for (uint32_t r = 0; r < work.row_count && !error; r++) {
		struct live_gpu *gpu = totals->gpus[totals->batch.gpus[r]];
		uint8_t kind = ids_get(&totals->tables.kind_of_copy, work.in.shape[r]);

		gpu->copy_counts[kind]++;
		gpu->copy_bytes[kind] += work.in.bytes[r];
	}
	return error ? error : add_busy(totals, &work);
}

static int add_memsets(struct live_totals *totals, const struct xt_chunk *chunk)
{
	struct work_columns work = columns_of(chunk);
	int error = find_gpus(totals, &work);

	for (uint32_t r = 0; r < work.row_count && !error; r++) {
		struct live_gpu *gpu = totals->gpus[totals->batch.gpus[r]];

		gpu->memset_count++;
		gpu->memset_bytes += work.in.bytes[r];
	}
	return error ? error : add_busy(totals, &work);
}

static void release(struct live_totals *totals, const struct xt_allocation *old)
{
	struct live_gpu *gpu = totals->gpus[old->gpu];

	gpu->allocated_bytes -=
		old->bytes < gpu->allocated_bytes ? old->bytes : gpu->allocated_bytes;
}

static int add_memory(struct live_totals *totals, const struct xt_row_memory *row)
{
	const struct xt_allocation new = {.address = row->address,
					  .bytes = row->bytes,
					  .time_ns = row->time_ns,
					  .gpu = gpu_number(row->device)};
	struct xt_allocation old;
	struct live_gpu *gpu;
	int outcome;

	if (!xt_memory_is_on_gpu(row->kind))
		return 0;
	totals->memory.newest_ns = larger(totals->memory.newest_ns, row->time_ns);
	gpu = gpu_at(totals, new.gpu);
	if (!gpu)
		return -ENOMEM;
	if (row->operation != XT_MEMORY_ALLOC) {
		if (xt_allocations_remove(&totals->memory.allocations, row->address, row->time_ns,
					  &old))
			release(totals, &old);
		else if (totals->memory.has_before)
			release(totals, &new);
		return 0;
	}
	outcome = xt_allocations_add(&totals->memory.allocations, &new, &old);
	if (outcome == 1)
		release(totals, &old);
	if (outcome >= 0)
		gpu->allocated_bytes += new.bytes;
	return outcome == -ENOMEM ? outcome : 0;
}

XT_DEFINE_ROWS_READER(add_metas, meta, struct live_totals, add_meta)
XT_DEFINE_ROWS_READER(add_accounts, account, struct live_totals, add_account)
XT_DEFINE_ROWS_READER(add_streams, stream, struct live_totals, add_stream)
XT_DEFINE_ROWS_READER(add_copy_shapes, copy_shape, struct live_totals, add_copy_shape)
XT_DEFINE_ROWS_READER(add_apis, api, struct live_totals, add_api)
XT_DEFINE_ROWS_READER(add_calls, call, struct live_totals, add_call)
XT_DEFINE_ROWS_READER(add_memories, memory, struct live_totals, add_memory)
XT_DEFINE_ROWS_READER(add_switches, switch, struct live_totals, add_switch)
XT_DEFINE_ROWS_READER(add_clocks, clock, struct live_totals, add_clock)
XT_DEFINE_ROWS_READER(add_nodes, graph_node, struct live_totals, add_node)

static const struct kind_row {
	int (*add)(struct live_totals *totals, const struct xt_chunk *chunk);
	bool is_event;
} kind_rows[XT_KIND_COUNT] = {
	[XT_KIND_META] = {add_metas, false},	   [XT_KIND_ACCOUNT] = {add_accounts, false},
	[XT_KIND_STREAM] = {add_streams, false},   [XT_KIND_COPY_SHAPE] = {add_copy_shapes, false},
	[XT_KIND_API] = {add_apis, false},	   [XT_KIND_CALL] = {add_calls, true},
	[XT_KIND_KERNEL] = {add_kernels, true},	   [XT_KIND_COPY] = {add_copies, true},
	[XT_KIND_SET] = {add_memsets, true},	   [XT_KIND_MEMORY] = {add_memories, true},
	[XT_KIND_SWITCH] = {add_switches, false},  [XT_KIND_CLOCK] = {add_clocks, false},
	[XT_KIND_GRAPH_NODE] = {add_nodes, false},
};

uint32_t live_totals_kinds(void)
{
	uint32_t kinds = 0;

	for (unsigned k = 0; k < XT_KIND_COUNT; k++)
		kinds |= (uint32_t)(kind_rows[k].add != NULL) << k;
	return kinds;
}

uint32_t live_totals_event_kinds(void)
{
	uint32_t kinds = 0;

	for (unsigned k = 0; k < XT_KIND_COUNT; k++)
		kinds |= (uint32_t)kind_rows[k].is_event << k;
	return kinds;
}

/* The work of a launch is in the log when it has ended. Until then, the GPU may be busy. */
static uint64_t before_waiting(struct live_totals *totals, uint64_t until_ns)
{
	uint64_t waiting_ns = live_calls_waiting_since_ns(&totals->gaps.calls, until_ns);

	return waiting_ns < until_ns ? waiting_ns : until_ns;
}

static void settle(struct live_totals *totals, uint64_t until_ns)
{
	for (unsigned g = 0; g < LIVE_GPUS; g++)
		if (totals->gpus[g])
			live_idle_settle(&totals->gpus[g]->idle, &totals->gaps,
					 &totals->gpus[g]->busy, until_ns);
}

/* Open gaps need to know what threads did since then. */
static void forget_threads(struct live_totals *totals)
{
	uint64_t oldest_ns = UINT64_MAX;

	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		uint64_t open_ns = totals->gpus[g] ? live_idle_open_ns(&totals->gpus[g]->idle,
								       &totals->gpus[g]->busy)
						   : UINT64_MAX;

		if (open_ns < oldest_ns)
			oldest_ns = open_ns;
	}
	live_gaps_forget(&totals->gaps, oldest_ns);
}

int live_totals_add(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const struct kind_row *row = &kind_rows[xt_chunk_kind(chunk)];
	int error = row->add ? row->add(totals, chunk) : 0;

	if (row->is_event && totals->gaps.newest_ns > LIVE_SETTLE_NS)
		settle(totals, before_waiting(totals, totals->gaps.newest_ns - LIVE_SETTLE_NS));
	if (totals->gaps.checkpoint_count > LIVE_CHECKPOINTS_FEW)
		forget_threads(totals);
	return error;
}

/*
 * The clock in the log tells up to when it is complete, even if its writer does not get to run or
 * cannot write.
 */
void live_totals_advance(struct live_totals *totals)
{
	uint64_t until_ns =
		totals->clock_ns > LIVE_DELIVERY_NS ? totals->clock_ns - LIVE_DELIVERY_NS : 0;

	until_ns = before_waiting(totals, until_ns);
	settle(totals, until_ns);
	for (unsigned g = 0; g < LIVE_GPUS; g++)
		if (totals->gpus[g])
			live_idle_extend(&totals->gpus[g]->idle, &totals->gaps,
					 &totals->gpus[g]->busy, until_ns);
	forget_threads(totals);
}

void live_totals_finish(struct live_totals *totals)
{
	settle(totals, UINT64_MAX);
}

uint64_t live_account_value(const struct live_accounts *accounts, const char *name)
{
	for (size_t i = 0; i < accounts->count; i++)
		if (!strcmp(accounts->rows[i].name, name))
			return accounts->rows[i].value;
	return 0;
}

uint64_t live_accounts_lost(const struct live_accounts *accounts,
			    bool (*is_loss)(const char *name, size_t length), bool is_by_size)
{
	uint64_t sum = 0;

	if (is_by_size && accounts->is_flight_recorder)
		return 0;
	for (size_t i = 0; i < accounts->count; i++) {
		const char *name = accounts->rows[i].name;
		size_t length = strlen(name);

		if (is_loss(name, length) && xt_account_is_beyond_size(name, length) == is_by_size)
			sum += accounts->rows[i].value;
	}
	return sum;
}

uint64_t live_totals_lost(const struct live_totals *totals, bool is_by_size)
{
	return live_accounts_lost(&totals->accounts, xt_account_is_event_loss, is_by_size);
}

void live_totals_free(struct live_totals *totals)
{
	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		if (totals->gpus[g])
			live_spans_free(&totals->gpus[g]->busy);
		free(totals->gpus[g]);
	}
	free_all(totals->tables.gpu_of_stream.values, totals->tables.kind_of_copy.values,
		 totals->tables.class_of_api.values, totals->tables.state_of_api.values);
	live_gaps_free(&totals->gaps);
	xt_allocations_free(&totals->memory.allocations);
	free(totals->batch.spans);
	free(totals->batch.gpus);
	*totals = (struct live_totals){0};
}
