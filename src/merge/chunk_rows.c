/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes the rows of a chunk to the reader of their kind. Those of memory and ranges are here.
 */
#include "merge/chunk_rows.h"

#include "log/read/rows.h"
#include "merge/call_rows.h"
#include "merge/row_blocks.h"
#include "merge/sums/attribute.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/event_filter.h"
#include "merge/work_rows.h"

/* A block of allocations and frees. */
struct memory_rows {
	const uint64_t *correlation, *operation, *address, *bytes, *time_ns, *device, *kind;
	struct block_buffers buffers;
};

static void load_memory(const struct xt_chunk *chunk, uint32_t row, struct memory_rows *rows)
{
	rows->correlation = block_of(chunk, XT_MEMORY_CORRELATION, row, &rows->buffers);
	rows->operation = block_of(chunk, XT_MEMORY_OPERATION, row, &rows->buffers);
	rows->address = block_of(chunk, XT_MEMORY_ADDRESS, row, &rows->buffers);
	rows->bytes = block_of(chunk, XT_MEMORY_BYTES, row, &rows->buffers);
	rows->time_ns = block_of(chunk, XT_MEMORY_TIME_NS, row, &rows->buffers);
	rows->device = block_of(chunk, XT_MEMORY_DEVICE, row, &rows->buffers);
	rows->kind = block_of(chunk, XT_MEMORY_KIND, row, &rows->buffers);
}

static void read_memory_row(struct reading *reading, const struct memory_rows *rows, uint32_t r)
{
	uint64_t operation = rows->operation[r], device = rows->device[r];
	struct work work = {
		.correlation =
			unique_correlation(reading->model, rows->correlation[r], rows->time_ns[r]),
		.start_ns = rows->time_ns[r],
		.graph_node = rows->address[r],
		.bytes = rows->bytes[r],
		.stream = device > UINT32_MAX ? ROOT_UNKNOWN : (uint32_t)device,
		.shape = label_index(rows->kind[r], MEMORY_KINDS),
		.kind = operation == XT_MEMORY_ALLOC ? WORK_ALLOC : WORK_FREE,
	};
	struct owner owner;

	if (operation != XT_MEMORY_ALLOC && operation != XT_MEMORY_FREE)
		return;
	if (reading->run->selection && !event_filter_wants_time(reading, work.start_ns)) {
		if (work.start_ns > reading->memory.skipped_ns)
			reading->memory.skipped_ns = work.start_ns;
		return;
	}
	reading->counts.calls.memory_untimed_count += !work.start_ns;
	owner_without_call(reading, &work, &owner);
	memory_add(&reading->memory, &work, &owner, &work.ticket);
	if (work.kind == WORK_ALLOC)
		correlate_work(reading->correlate, &work);
}

static void read_memory(struct reading *reading, const struct xt_chunk *chunk)
{
	struct memory_rows rows;

	for (uint32_t from = 0; from < xt_chunk_rows(chunk); from += XT_BLOCK_ROWS) {
		load_memory(chunk, from, &rows);
		for (uint32_t r = 0; r < block_rows(chunk, from); r++)
			read_memory_row(reading, &rows, r);
	}
}

/* Passes ranges to exporters that show them. The model already has them. */
static void read_ranges(struct reading *reading, const struct xt_chunk *chunk)
{
	const struct xt_columns_range columns = xt_columns_range(chunk);

	for (size_t e = 0; e < reading->sink_count; e++) {
		struct sink *sink = &reading->sinks[e];

		for (uint32_t r = 0; sink->exporter->range && r < xt_chunk_rows(chunk); r++) {
			const struct xt_row_range row = xt_read_range(&columns, r);

			sink->exporter->range(sink, &reading->process, &row);
		}
	}
}

static const struct {
	void (*read)(struct reading *reading, const struct xt_chunk *chunk);
	bool is_packed; /* read with xt_chunk_block() only */
} kinds[XT_KIND_COUNT] = {
	[XT_KIND_CALL] = {call_rows_read, true}, [XT_KIND_KERNEL] = {work_rows_read, true},
	[XT_KIND_COPY] = {work_rows_read, true}, [XT_KIND_SET] = {work_rows_read, true},
	[XT_KIND_MEMORY] = {read_memory, true},	 [XT_KIND_RANGE] = {read_ranges, false},
};

uint32_t chunk_row_kinds(void)
{
	uint32_t bits = 0;

	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		bits |= kinds[kind].read ? 1u << kind : 0;
	return bits;
}

uint32_t chunk_row_packed_kinds(void)
{
	uint32_t bits = 0;

	for (int kind = 0; kind < XT_KIND_COUNT; kind++)
		bits |= kinds[kind].is_packed ? 1u << kind : 0;
	return bits;
}

void chunk_rows_read(struct reading *reading, const struct xt_chunk *chunk)
{
	kinds[xt_chunk_kind(chunk)].read(reading, chunk);
}
