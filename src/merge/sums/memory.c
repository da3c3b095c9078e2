/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live allocations.
 */
#include "merge/sums/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/base/labels.h"
#include "merge/sums/reading.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

#define MEMORY_POOL_REST (MEMORY_POOLS_MAX - 1)

struct operation {
	uint64_t time_ns;
	uint64_t address;
	uint64_t bytes;
	uint32_t pool;
	bool is_alloc;
	struct owner owner;
};

struct holder {
	uint64_t live_bytes;
	uint64_t at_peak_bytes; /* live_bytes if the epoch is not that of the pool */
	uint64_t epoch;
};

uint32_t memory_pool(uint32_t device, uint32_t kind)
{
	if (kind == MEMORY_PAGEABLE || kind == MEMORY_PINNED)
		return MEMORY_POOL_HOST;
	return device < MEMORY_POOL_HOST ? device : MEMORY_POOL_REST;
}

/* Gets the holder before its size changes, and save the size at the last peak. */
static struct holder *touch(struct memory *memory, uint32_t place, const struct memory_pool *pool)
{
	struct holder *holder = &memory->holders.list[place];

	if (holder->epoch != pool->epoch) {
		holder->at_peak_bytes = holder->live_bytes;
		holder->epoch = pool->epoch;
	}
	return holder;
}

/* The allocation was removed from the live ones. */
static void release(struct memory *memory, const struct xt_allocation *allocation)
{
	struct memory_pool *pool = &memory->pools[allocation->gpu];

	touch(memory, allocation->holder, pool)->live_bytes -= allocation->bytes;
	pool->live_bytes -= allocation->bytes;
}

/*
 * CUPTI's memory kinds 6 and 7 are variables of GPU modules. The driver allocates them when it
 * loads code, without an allocation call.
 */
static bool is_static(uint32_t memory_kind)
{
	return memory_kind == 6 || memory_kind == 7;
}

static void report_change(struct memory *memory, uint32_t pool, uint64_t time_ns)
{
	memory->listener.changed(memory->listener.context, pool, time_ns,
				 memory->pools[pool].live_bytes);
}

static void allocate(struct memory *memory, const struct operation *operation)
{
	struct memory_pool *pool = &memory->pools[operation->pool];
	uint32_t place = aggregate_index(memory->aggregate, &operation->owner);
	const struct xt_allocation new = {.address = operation->address,
					  .bytes = operation->bytes,
					  .gpu = operation->pool,
					  .holder = place};
	struct xt_allocation old;
	int outcome = xt_allocations_add(&memory->live, &new, &old);

	if (outcome < 0)
		xt_out_of_memory(0);
	list_reserve(memory->holders, place + 1);
	if (outcome) {
		memory->counts.alloc_over++;
		release(memory, &old);
		if (old.gpu != operation->pool)
			report_change(memory, old.gpu, operation->time_ns);
	}
	memory->counts.unowned += !operation->owner.stack &&
				  !(operation->owner.marks & OWNER_PAUSED) &&
				  !is_static(MEMORY_WHAT_KIND(operation->owner.what));
	memory->aggregate->entries[place].weights[WEIGHT_ALLOC_BYTES] += operation->bytes;
	memory->aggregate->entries[place].alloc_count++;
	touch(memory, place, pool)->live_bytes += operation->bytes;
	pool->alloc_count++;
	pool->alloc_bytes += operation->bytes;
	pool->live_bytes += operation->bytes;
	if (pool->live_bytes <= pool->peak_bytes)
		return;
	pool->peak_bytes = pool->live_bytes;
	pool->peak_ns = operation->time_ns;
	pool->epoch++;
}

/* A freed block belongs to the pool of its allocation, even if the free record names another. */
static uint32_t release_at(struct memory *memory, const struct operation *operation)
{
	struct xt_allocation old = {.gpu = operation->pool};
	bool is_known = xt_allocations_remove(&memory->live, operation->address, 0, &old);

	memory->pools[old.gpu].free_count++;
	if (is_known)
		release(memory, &old);
	else
		memory->counts.free_unmatched++;
	return old.gpu;
}

static void forget(struct memory *memory, uint64_t time_ns)
{
	for (size_t s = 0; s < memory->live.slot_count; s++)
		if (memory->live.slots[s].is_used)
			release(memory, &memory->live.slots[s]);
	xt_allocations_free(&memory->live);
	for (uint32_t pool = 0; pool < MEMORY_POOLS_MAX; pool++)
		if (memory->pools[pool].alloc_count)
			report_change(memory, pool, time_ns);
}

/* While recording is stopped, frees are not seen. So memory counts from each start. */
static void forget_at_starts(struct memory *memory, uint64_t now_ns)
{
	const struct pauses *stops = memory->stops;

	while (memory->stops_passed < stops->count &&
	       stops->list[memory->stops_passed].until_ns <= now_ns)
		forget(memory, stops->list[memory->stops_passed++].until_ns);
}

static void next_operation(void *context, void *item, bool is_late)
{
	struct memory *memory = context;
	const struct operation *operation = item;
	uint32_t pool = operation->pool;

	forget_at_starts(memory, operation->time_ns);
	memory->last_ns = operation->time_ns;
	memory->counts.late_count += is_late;
	if (!operation->is_alloc)
		pool = release_at(memory, operation);
	else
		allocate(memory, operation);
	report_change(memory, pool, operation->time_ns);
}

void memory_init(struct memory *memory, struct aggregate *aggregate, const struct pauses *stops,
		 struct memory_listener listener)
{
	*memory = (struct memory){.aggregate = aggregate, .stops = stops, .listener = listener};
	memory->live.is_unbounded = true;
	reorder_buffer_init(&memory->reorder, sizeof(struct operation), 0, next_operation, memory);
}

void memory_free(struct memory *memory)
{
	reorder_buffer_free(&memory->reorder);
	xt_allocations_free(&memory->live);
	free(memory->holders.list);
	*memory = (struct memory){0};
}

void memory_add(struct memory *memory, const struct work *work, const struct owner *owner,
		uint64_t *ticket_out)
{
	struct operation operation = {
		.time_ns = work->start_ns,
		.address = work->graph_node,
		.bytes = work->bytes,
		.pool = memory_pool(work->stream, work->shape),
		.is_alloc = work->kind == WORK_ALLOC,
		.owner = *owner,
	};

	reorder_buffer_push(&memory->reorder, work->start_ns, &operation, ticket_out);
}

void memory_set_owner(struct memory *memory, uint64_t ticket, const struct owner *owner)
{
	struct operation *operation = reorder_buffer_item(&memory->reorder, ticket);

	if (operation)
		operation->owner = *owner;
}

void memory_finish(struct memory *memory, bool ends_early)
{
	reorder_buffer_finish(&memory->reorder);
	if (ends_early && memory->skipped_ns <= memory->last_ns)
		forget(memory, memory->last_ns);
	for (size_t place = 0; place < memory->holders.capacity; place++) {
		const struct holder *holder = &memory->holders.list[place];
		const struct memory_pool *pool;
		uint64_t *weights;

		if (place >= memory->aggregate->count ||
		    memory->aggregate->entries[place].owner.leaf != LEAF_MEMORY)
			continue;
		weights = memory->aggregate->entries[place].weights;
		pool = &memory->pools[MEMORY_WHAT_POOL(
			memory->aggregate->entries[place].owner.what)];
		weights[WEIGHT_PEAK_BYTES] =
			holder->epoch == pool->epoch ? holder->at_peak_bytes : holder->live_bytes;
		weights[WEIGHT_LEAKED_BYTES] = holder->live_bytes;
	}
}

/* Adds the summary row for the memory of a pool. */
static void add_memory_row(struct memory_sums *all, const struct reading *reading, uint32_t pool)
{
	const struct process *process = &reading->process;
	const struct memory_pool *sums = &reading->sums.memory.pools[pool];
	char device[32];
	char *label;

	if (!sums->alloc_count && !sums->free_count)
		return;
	snprintf(device, sizeof(device),
		 pool == MEMORY_POOL_HOST	? "host"
		 : pool == MEMORY_POOLS_MAX - 1 ? "other devices"
						: "GPU%u",
		 pool);
	label = xt_asprintf("%s%s%s", device, process->process_count > 1 ? " of " : "",
			    process->process_count > 1 ? process->label : "");
	list_append(*all,
		    (struct memory_row){
			    .label = names_intern(&reading->run->paths.names, label, strlen(label)),
			    .pool = *sums,
			    .peak_ns = process_time_ns(process, sums->peak_ns),
		    });
	free(label);
}

void memory_sums_add(struct memory_sums *all, const struct reading *reading)
{
	struct memory_counts *sums = &all->counts;
	const struct memory_counts *counts = &reading->sums.memory.counts;

	/* If only a part of the run is selected, the other half of a pair may be outside of it. */
	if (!run_is_part(reading->run)) {
		/* Memory that is freed may have been allocated when the log has no events. */
		if (!reading->model->stops.count && !model_is_cut(reading->model))
			sums->free_unmatched += counts->free_unmatched;
		sums->alloc_over += counts->alloc_over;
		sums->unowned += counts->unowned;
	}
	sums->late_count += counts->late_count;
	for (uint32_t pool = 0; pool < MEMORY_POOLS_MAX; pool++)
		add_memory_row(all, reading, pool);
}

static const struct column_def columns[] = {
	COLUMN("alloc_count", COUNT, FROM(memory_row, pool.alloc_count), "allocations",
	       WIDE("allocations", 12, 120)),
	COLUMN("alloc_bytes", BYTES, FROM(memory_row, pool.alloc_bytes), "bytes of all allocations",
	       WIDE("allocated", 12, 64)),
	COLUMN("free_count", COUNT, FROM(memory_row, pool.free_count), "frees",
	       WIDE("frees", 12, 120)),
	COLUMN("peak_bytes", BYTES, FROM(memory_row, pool.peak_bytes), "most bytes held at a time",
	       HEAD("peak", 12)),
	COLUMN("peak_at_ns", MOMENT, FROM(memory_row, peak_ns), "when that was",
	       WIDE("peak at", 12, 76)),
	COLUMN("leaked_bytes", BYTES, FROM(memory_row, pool.live_bytes), "bytes held at the end",
	       HEAD("at the end", 12)),
	COLUMN("name", TEXT, OTHER, "device or host", LAST("memory")),
};

OPEN_LIST(open_rows, rows->run->sums->memory)

static void memory_put_row(struct table_rows *rows, struct cells *cells)
{
	const struct memory_row *row = rows->record;

	cells_put(cells, cell_name(&rows->run->paths.names, row->label));
}

static size_t notes(const struct run *run, const char *out[NOTES_MAX])
{
	size_t count = 0;

	if (run->selection && wanted_has_patterns(&run->settings->wanted))
		out[count++] = "includes all calls in the time window; --filter, --focus and "
			       "--range do not apply";
	if (losses_account(&run->sums->losses, "kinds.lost.memory"))
		out[count++] =
			"recorded only for a part of the run, because CUPTI could have ended "
			"the program; what was freed later is not known";
	if (run->sums->recording.stop_count)
		out[count++] = "counts from each start of recording: allocations and frees while "
			       "it was stopped are not known";
	return count;
}

const struct table_def table_memory = {
	.name = "memory",
	.title = "Memory",
	.what = "Memory by process and device.",
	HAS_COLUMNS(columns),
	.shows = "alloc_count free_count alloc_bytes peak_bytes peak_at_ns leaked_bytes name",
	.view = "memory_peaks",
	.open = open_rows,
	.row = memory_put_row,
	.notes = notes,
	.is_whole = true,
};
