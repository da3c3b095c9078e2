/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes kernels, copies and memsets to the join, and to whatever else looks at work.
 *
 * The loop runs for every kernel. If only the sums by path are wanted, nearly all kernels are
 * plain. A plain kernel belongs to the newest call with its hash, and to the sum that came next the
 * last time. Other kernels take a slower path with the same result.
 */
#include "merge/work_rows.h"

#include "merge/row_blocks.h"
#include "merge/sums/attribute.h"
#include "merge/sums/build_tree.h"

/* Differences between kernels, copies and memsets. */
static const struct {
	unsigned shape_column;
	unsigned bytes_column; /* an absent column is all zeros */
	uint8_t kind;
} work_columns[XT_KIND_COUNT] = {
	[XT_KIND_KERNEL] = {XT_KERNEL_SHAPE, XT_COPY_BYTES, WORK_KERNEL},
	[XT_KIND_COPY] = {XT_COPY_SHAPE, XT_COPY_BYTES, WORK_COPY},
	[XT_KIND_SET] = {XT_SET_MEMORY, XT_SET_BYTES, WORK_MEMSET},
};

/* The weight of work may depend on other work, so it is computed in time order. */
static void add_to_timeline(struct reading *reading, struct work *work)
{
	const struct model *model = reading->model;
	const struct stream *stream =
		&model->streams.rows[work->stream < model->streams.count ? work->stream : 0];
	struct owner owner;

	owner_without_call(reading, work, &owner);
	timeline_add(reading->timeline, stream->defined ? stream->device : ROOT_UNKNOWN, work,
		     &owner, &work->ticket);
}

/* A block of kernels, copies or memsets. */
struct work_rows {
	enum xt_kind kind;
	const uint64_t *correlation, *stream, *shape, *start_ns, *duration_ns;
	const uint64_t *graph_node, *bytes; /* NULL: all zeros */
	struct block_buffers buffers;
};

static void load_work(const struct xt_chunk *chunk, uint32_t row, struct work_rows *rows)
{
	rows->kind = xt_chunk_kind(chunk);
	rows->correlation = block_of(chunk, XT_KERNEL_CORRELATION, row, &rows->buffers);
	rows->stream = block_of(chunk, XT_KERNEL_STREAM, row, &rows->buffers);
	rows->shape = block_of(chunk, work_columns[rows->kind].shape_column, row, &rows->buffers);
	rows->start_ns = block_of(chunk, XT_KERNEL_START_NS, row, &rows->buffers);
	rows->duration_ns = block_of(chunk, XT_KERNEL_DURATION_NS, row, &rows->buffers);
	rows->graph_node = block_or_null(chunk, XT_KERNEL_GRAPH_NODE, row, &rows->buffers);
	rows->bytes =
		block_or_null(chunk, work_columns[rows->kind].bytes_column, row, &rows->buffers);
}

/* Joins one row and passes it to everything that looks at work. */
static __attribute__((noinline)) void read_work_row(struct reading *reading,
						    const struct work_rows *rows, uint32_t r)
{
	const struct model *model = reading->model;
	bool is_kernel = rows->kind == XT_KIND_KERNEL;
	bool wants_collectives = is_kernel && (reading->timeline || reading->exports_work);
	struct work work = {
		.correlation = unique_correlation(model, rows->correlation[r], rows->start_ns[r]),
		.start_ns = rows->start_ns[r],
		.duration_ns = rows->duration_ns[r],
		.graph_node = rows->graph_node ? rows->graph_node[r] : 0,
		.bytes = rows->bytes ? rows->bytes[r] : 0,
		.stream = narrow_id(rows->stream[r]),
		.shape = narrow_id(rows->shape[r]),
		.kind = work_columns[rows->kind].kind,
	};

	if (wants_collectives && work.shape < model->shapes.count)
		work.is_collective = model->shapes.rows[work.shape].is_collective;
	if (!has_valid_times(work.start_ns, work.duration_ns)) {
		reading->counts.work.work_invalid_count++;
		reading->kernel_invalid_count += is_kernel;
		return;
	}
	if (is_kernel && work.graph_node && work.correlation && !work_is_whole_graph(&work))
		missing_note_graph_kernel(&reading->missing, model, work.graph_node);
	if (reading->timeline)
		add_to_timeline(reading, &work);
	if (reading->replays && work_is_by_device(&work))
		replays_join(reading->replays, &work);
	else
		correlate_work(reading->correlate, &work);
}

/*
 * Joins and adds a kernel outside graphs, if its sum is the expected one. Returns false, without
 * any effect, if read_work_row() has to do it.
 */
static inline bool read_plain_kernel(struct reading *reading, const struct work_rows *rows,
				     uint32_t r, struct plain_sums *sums)
{
	uint64_t start_ns = rows->start_ns[r], duration_ns = rows->duration_ns[r];
	struct launch *launch;

	if ((rows->graph_node && rows->graph_node[r]) || !has_valid_times(start_ns, duration_ns))
		return false;
	launch = correlate_newest(
		reading->correlate,
		unique_correlation(reading->model, rows->correlation[r], start_ns), start_ns);
	if (!launch || !add_plainly(reading, launch, narrow_id(rows->shape[r]), duration_ns, sums))
		return false;
	launch->flags |= LAUNCH_MATCHED;
	return true;
}

void work_rows_read(struct reading *reading, const struct xt_chunk *chunk)
{
	bool is_plain = reading->sums_plainly && xt_chunk_kind(chunk) == XT_KIND_KERNEL;
	struct plain_sums sums = {0};
	struct work_rows rows;

	for (uint32_t from = 0; from < xt_chunk_rows(chunk); from += XT_BLOCK_ROWS) {
		uint32_t row_count = block_rows(chunk, from);

		load_work(chunk, from, &rows);
		for (uint32_t r = 0; r < row_count; r++)
			if (!is_plain || !read_plain_kernel(reading, &rows, r, &sums))
				read_work_row(reading, &rows, r);
	}
	reading->correlate->counts.work_joined += sums.count;
	reading_add_plain_sums(reading, &sums);
}
