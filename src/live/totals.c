/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the rows of chunks to the totals, one function for each kind of chunk.
 */
#include "live/totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/call_result.h"
#include "log/base/grow.h"
#include "log/base/script_name.h"
#include "xtrace/account.h"

#define IDS_MAX		(1u << 20)
#define MEMORY_PAGEABLE 1
#define MEMORY_PINNED	2

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

static int add_meta(struct live_totals *totals, const struct xt_chunk *chunk)
{
	static const char exe[] = "process.exe", line[] = "process.cmdline",
			  recorder[] = "log.flight_recorder";

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct xt_bytes key = xt_chunk_bytes(chunk, XT_META_KEY, r);
		struct xt_bytes text = xt_chunk_bytes(chunk, XT_META_VALUE, r);
		char *out = NULL;
		size_t room = 0;

		totals->is_flight_recorder |=
			key.length == strlen(recorder) && !memcmp(key.data, recorder, key.length);
		if (key.length == strlen(exe) && !memcmp(key.data, exe, key.length)) {
			out = totals->program;
			room = sizeof(totals->program) - 1;
		} else if (key.length == strlen(line) && !memcmp(key.data, line, key.length)) {
			out = totals->command_line;
			room = sizeof(totals->command_line) - 1;
		}
		if (!out || !text.length)
			continue;
		room = text.length < room ? text.length : room;
		memcpy(out, text.data, room);
		out[room] = '\0';
	}
	if (*totals->program)
		xt_script_title(totals->command, sizeof(totals->command), totals->program,
				totals->command_line);
	return 0;
}

static struct live_account *account_of(struct live_totals *totals, struct xt_bytes name)
{
	struct live_account *account;

	if (!name.length || name.length >= sizeof(account->name))
		return NULL;
	for (size_t i = 0; i < totals->account_count; i++)
		if (strlen(totals->accounts[i].name) == name.length &&
		    !memcmp(totals->accounts[i].name, name.data, name.length))
			return &totals->accounts[i];
	if (totals->account_count == LIVE_ACCOUNTS_MAX)
		return NULL;
	account = &totals->accounts[totals->account_count++];
	memcpy(account->name, name.data, name.length);
	account->is_loss = xt_account_is_loss(name.data, name.length);
	return account;
}

/* A compacted log repeats older values, so the largest counts. */
static int add_accounts(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const uint64_t *values = xt_chunk_u64(chunk, XT_ACCOUNT_VALUE);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		struct live_account *account =
			account_of(totals, xt_chunk_bytes(chunk, XT_ACCOUNT_NAME, r));

		if (account && values[r] > account->value)
			account->value = values[r];
	}
	return 0;
}

static int add_streams(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_STREAM_ID);
	const uint64_t *devices = xt_chunk_u64(chunk, XT_STREAM_DEVICE);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++)
		error = ids_put(&totals->gpu_of_stream, ids[r],
				(uint8_t)(gpu_number(devices[r]) + 1));
	return error;
}

static int add_copy_shapes(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_COPY_SHAPE_ID);
	const uint64_t *kinds = xt_chunk_u64(chunk, XT_COPY_SHAPE_KIND);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++)
		error = ids_put(&totals->kind_of_copy, ids[r],
				kinds[r] < LIVE_COPY_KINDS ? (uint8_t)kinds[r] : 0);
	return error;
}

static int add_apis(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const uint64_t *ids = xt_chunk_u64(chunk, XT_API_ID);
	const uint64_t *classes = xt_chunk_u64(chunk, XT_API_CLASS);
	int error = 0;

	for (uint32_t r = 0; r < xt_chunk_rows(chunk) && !error; r++)
		error = ids_put(&totals->class_of_api, ids[r],
				classes[r] < XT_API_CLASSES ? (uint8_t)classes[r] : XT_API_OTHER);
	return error;
}

static int add_calls(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const uint64_t *apis = xt_chunk_u64(chunk, XT_CALL_API);
	const uint64_t *results = xt_chunk_u64(chunk, XT_CALL_RESULT);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		uint8_t class = ids_get(&totals->class_of_api, apis[r]);

		totals->launch_count += class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH;
		totals->error_count += xt_call_failed(class, results[r]);
	}
	return 0;
}

/* Adds the spans of all rows of one GPU to its union. Marks those rows as done. */
static int add_spans(struct live_totals *totals, const uint64_t *starts, const uint64_t *durations,
		     uint32_t row_count, uint32_t first)
{
	uint8_t gpu = totals->batch_gpus[first];
	size_t count = 0;

	for (uint32_t r = first; r < row_count; r++) {
		if (totals->batch_gpus[r] != gpu)
			continue;
		totals->batch_gpus[r] = UINT8_MAX;
		/* A damaged log must not cause an overflow. */
		if (durations[r] <= UINT64_MAX - starts[r])
			totals->batch[count++] =
				(struct live_span){starts[r], starts[r] + durations[r]};
	}
	return live_spans_add(&totals->gpus[gpu]->busy, totals->batch, count);
}

/* Busy time of work. batch_gpus has the GPU of each row. */
static int add_busy(struct live_totals *totals, const uint64_t *starts, const uint64_t *durations,
		    uint32_t row_count)
{
	int error =
		grow(&totals->batch, &totals->batch_capacity, row_count, sizeof(*totals->batch));

	for (uint32_t r = 0; r < row_count && !error; r++)
		if (totals->batch_gpus[r] != UINT8_MAX)
			error = add_spans(totals, starts, durations, row_count, r);
	return error;
}

/* Finds the GPU of each row by its stream. */
static int find_gpus(struct live_totals *totals, const uint64_t *streams, uint32_t row_count)
{
	int error = grow(&totals->batch_gpus, &totals->batch_gpu_capacity, row_count, 1);

	for (uint32_t r = 0; r < row_count && !error; r++) {
		uint8_t gpu = ids_get(&totals->gpu_of_stream, streams[r]);

		totals->batch_gpus[r] = gpu ? gpu - 1 : LIVE_GPU_UNKNOWN;
		if (!gpu_at(totals, totals->batch_gpus[r]))
			error = -ENOMEM;
	}
	return error;
}

static int add_kernels(struct live_totals *totals, const struct xt_chunk *chunk)
{
	uint32_t row_count = xt_chunk_rows(chunk);
	int error = find_gpus(totals, xt_chunk_u64(chunk, XT_KERNEL_STREAM), row_count);

	for (uint32_t r = 0; r < row_count && !error; r++)
		totals->gpus[totals->batch_gpus[r]]->kernel_count++;
	return error ? error
		     : add_busy(totals, xt_chunk_u64(chunk, XT_KERNEL_START_NS),
				xt_chunk_u64(chunk, XT_KERNEL_DURATION_NS), row_count);
}

static int add_copies(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const uint64_t *shapes = xt_chunk_u64(chunk, XT_COPY_SHAPE);
	const uint64_t *bytes = xt_chunk_u64(chunk, XT_COPY_BYTES);
	uint32_t row_count = xt_chunk_rows(chunk);
	int error = find_gpus(totals, xt_chunk_u64(chunk, XT_COPY_STREAM), row_count);

	for (uint32_t r = 0; r < row_count && !error; r++) {
		struct live_gpu *gpu = totals->gpus[totals->batch_gpus[r]];
		uint8_t kind = ids_get(&totals->kind_of_copy, shapes[r]);

		gpu->copy_counts[kind]++;
		gpu->copy_bytes[kind] += bytes[r];
	}
	return error ? error
		     : add_busy(totals, xt_chunk_u64(chunk, XT_COPY_START_NS),
				xt_chunk_u64(chunk, XT_COPY_DURATION_NS), row_count);
}

static int add_memsets(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const uint64_t *bytes = xt_chunk_u64(chunk, XT_SET_BYTES);
	uint32_t row_count = xt_chunk_rows(chunk);
	int error = find_gpus(totals, xt_chunk_u64(chunk, XT_SET_STREAM), row_count);

	for (uint32_t r = 0; r < row_count && !error; r++) {
		struct live_gpu *gpu = totals->gpus[totals->batch_gpus[r]];

		gpu->memset_count++;
		gpu->memset_bytes += bytes[r];
	}
	return error ? error
		     : add_busy(totals, xt_chunk_u64(chunk, XT_SET_START_NS),
				xt_chunk_u64(chunk, XT_SET_DURATION_NS), row_count);
}

static void release(struct live_totals *totals, const struct live_allocation *old)
{
	totals->gpus[old->gpu]->allocated_bytes -= old->bytes;
}

static int add_memory(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const uint64_t *operations = xt_chunk_u64(chunk, XT_MEMORY_OPERATION);
	const uint64_t *addresses = xt_chunk_u64(chunk, XT_MEMORY_ADDRESS);
	const uint64_t *bytes = xt_chunk_u64(chunk, XT_MEMORY_BYTES);
	const uint64_t *times = xt_chunk_u64(chunk, XT_MEMORY_TIME_NS);
	const uint64_t *devices = xt_chunk_u64(chunk, XT_MEMORY_DEVICE);
	const uint64_t *kinds = xt_chunk_u64(chunk, XT_MEMORY_KIND);

	for (uint32_t r = 0; r < xt_chunk_rows(chunk); r++) {
		const struct live_allocation new = {.address = addresses[r],
						    .bytes = bytes[r],
						    .time_ns = times[r],
						    .gpu = gpu_number(devices[r])};
		struct live_allocation old;
		struct live_gpu *gpu;
		int outcome;

		if (kinds[r] == MEMORY_PAGEABLE || kinds[r] == MEMORY_PINNED)
			continue;
		gpu = gpu_at(totals, new.gpu);
		if (!gpu)
			return -ENOMEM;
		if (operations[r] != XT_MEMORY_ALLOC) {
			if (live_allocations_remove(&totals->allocations, addresses[r], times[r],
						    &old))
				release(totals, &old);
			continue;
		}
		outcome = live_allocations_add(&totals->allocations, &new, &old);
		if (outcome == -ENOMEM)
			return outcome;
		if (outcome == 1)
			release(totals, &old);
		if (outcome >= 0)
			gpu->allocated_bytes += new.bytes;
	}
	return 0;
}

static const struct kind_row {
	int (*add)(struct live_totals *totals, const struct xt_chunk *chunk);
	bool is_event;
} kind_rows[XT_KIND_COUNT] = {
	[XT_KIND_META] = {add_meta, false},	 [XT_KIND_ACCOUNT] = {add_accounts, false},
	[XT_KIND_STREAM] = {add_streams, false}, [XT_KIND_COPY_SHAPE] = {add_copy_shapes, false},
	[XT_KIND_API] = {add_apis, false},	 [XT_KIND_CALL] = {add_calls, true},
	[XT_KIND_KERNEL] = {add_kernels, true},	 [XT_KIND_COPY] = {add_copies, true},
	[XT_KIND_SET] = {add_memsets, true},	 [XT_KIND_MEMORY] = {add_memory, true},
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

int live_totals_add(struct live_totals *totals, const struct xt_chunk *chunk)
{
	const struct kind_row *row = &kind_rows[xt_chunk_kind(chunk)];

	return row->add ? row->add(totals, chunk) : 0;
}

uint64_t live_totals_account(const struct live_totals *totals, const char *name)
{
	for (size_t i = 0; i < totals->account_count; i++)
		if (!strcmp(totals->accounts[i].name, name))
			return totals->accounts[i].value;
	return 0;
}

uint64_t live_totals_lost(const struct live_totals *totals, bool is_by_size)
{
	uint64_t sum = 0;

	/* A flight recorder forgets on purpose. */
	if (is_by_size && totals->is_flight_recorder)
		return 0;
	for (size_t i = 0; i < totals->account_count; i++) {
		const struct live_account *account = &totals->accounts[i];

		if (account->is_loss && !!strstr(account->name, ".lost.size") == is_by_size)
			sum += account->value;
	}
	return sum;
}

void live_totals_free(struct live_totals *totals)
{
	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		if (totals->gpus[g])
			live_spans_free(&totals->gpus[g]->busy);
		free(totals->gpus[g]);
	}
	free(totals->gpu_of_stream.values);
	free(totals->kind_of_copy.values);
	free(totals->class_of_api.values);
	live_allocations_free(&totals->allocations);
	free(totals->batch);
	free(totals->batch_gpus);
	*totals = (struct live_totals){0};
}
