/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of all call paths, of the largest ones by weight, and of idle time by class.
 */
#include "base/memory.h"
#include "idle/idle.h"
#include "merge/sums/processes.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/sums/tables.h"
#include "merge/tables/table.h"

#define WEIGHT(weight) FROM(path_node, weights[weight])

static const struct column_def path_columns[] = {
	COLUMN("id", CODE, OTHER, "number of the path, as in SQLite"),
	COLUMN("gpu_time_ns", NS, WEIGHT(WEIGHT_GPU_TIME), "time on the GPU"),
	COLUMN("count", COUNT, WEIGHT(WEIGHT_COUNT), "kernels, copies and memsets"),
	COLUMN("cpu_wait_ns", NS, WEIGHT(WEIGHT_CPU_WAIT), "time that the CPU waited for the GPU"),
	COLUMN("gpu_exclusive_ns", NS, WEIGHT(WEIGHT_GPU_EXCLUSIVE),
	       "time on the GPU, shared among overlapping work"),
	COLUMN("gpu_idle_ns", NS, WEIGHT(WEIGHT_GPU_IDLE), "idle time of the GPU that it caused"),
	COLUMN("alloc_bytes", BYTES, WEIGHT(WEIGHT_ALLOC_BYTES), "bytes allocated"),
	COLUMN("peak_bytes", BYTES, WEIGHT(WEIGHT_PEAK_BYTES), "bytes held at the peak"),
	COLUMN("leaked_bytes", BYTES, WEIGHT(WEIGHT_LEAKED_BYTES), "bytes never freed"),
	COLUMN("cpu_time_ns", NS, WEIGHT(WEIGHT_CPU_TIME), "time of threads on a CPU"),
	COLUMN("off_cpu_ns", NS, WEIGHT(WEIGHT_OFF_CPU), "time of threads off a CPU"),
	COLUMN("collective_wait_ns", NS, WEIGHT(WEIGHT_COLLECTIVE_WAIT),
	       "waits for other ranks in collectives"),
	COLUMN("collective_cause_ns", NS, WEIGHT(WEIGHT_COLLECTIVE_CAUSE),
	       "waits of other ranks that it caused"),
	COLUMN("untimed_launches", COUNT, WEIGHT(WEIGHT_UNTIMED),
	       "kernels in CUDA graphs recorded as a whole"),
	COLUMN("path", PATH, OTHER, "call path"),
};

_Static_assert(sizeof(path_columns) / sizeof(*path_columns) == WEIGHTS + 2 && WEIGHTS == 13,
	       "each weight has a column");

static void open_paths(struct table_rows *rows)
{
	const struct paths *paths = &rows->run->paths;

	table_records(rows, paths->nodes, 0, sizeof(*paths->nodes));
	for (uint32_t n = 1; n < paths->node_count; n++) {
		uint64_t any = 0;

		for (int w = 0; w < WEIGHTS; w++)
			any |= paths->nodes[n].weights[w];
		if (any)
			table_add(rows, n);
	}
}

static void put_path(struct table_rows *rows, size_t node, const void *record, struct cells *cells)
{
	(void)record;
	cells_put(cells, cell_number(node));
	cells_put(cells, cell_path(&rows->run->paths, (uint32_t)node));
}

const struct table_def table_all_paths = {
	.name = "paths",
	.title = "Call paths",
	.what = "All call paths with their weights.",
	.form = FORM_NONE,
	HAS_COLUMNS(path_columns),
	.view = "path",
	.open = open_paths,
	.row = put_path,
};

#define TOP_COLUMNS(type, head)                                                                    \
	(const struct column_def[])                                                                \
	{                                                                                          \
		COLUMN("value", type, FROM(table_row, value), "its weight", HEAD(head, 12)),       \
			COLUMN("share", SHARE, OTHER, "part of all GPU time", HEAD("share", 7)),   \
			COLUMN("count", COUNT, FROM(table_row, count),                             \
			       "kernels, copies and memsets", WIDE("count", 12, 60)),              \
			COLUMN("path", PATH, OTHER, "call path", LAST("call path")),               \
	}

static void open_top(struct table_rows *rows, enum weight weight)
{
	struct table *table = rows->memory = xt_calloc(1, sizeof(*table));

	if (table_paths(table, &rows->run->paths, weight) < 0)
		xt_out_of_memory(0);
	table_records(rows, table->rows, table->count, sizeof(*table->rows));
}

static void close_top(struct table_rows *rows)
{
	table_free(rows->memory);
}

static void put_top(struct table_rows *rows, size_t index, const void *record, struct cells *cells)
{
	const struct table_row *row = record;

	(void)index;
	cells_put(cells, cell_share(row->value, rows->run->sums->events.work.gpu_ns));
	cells_put(cells, cell_path(&rows->run->paths, row->id));
}

static void open_time(struct table_rows *rows)
{
	open_top(rows, WEIGHT_GPU_TIME);
}

static void open_untimed(struct table_rows *rows)
{
	open_top(rows, WEIGHT_UNTIMED);
}

static void open_peak(struct table_rows *rows)
{
	open_top(rows, WEIGHT_PEAK_BYTES);
}

static void open_leaked(struct table_rows *rows)
{
	open_top(rows, WEIGHT_LEAKED_BYTES);
}

#define TOP_TABLE(title_text, type, head, open_rows, shown)                                        \
	{                                                                                          \
		.title = title_text, .columns = TOP_COLUMNS(type, head), .column_count = 4,        \
		.shows = shown, .open = open_rows, .row = put_top, .close = close_top              \
	}

const struct table_def table_time_by_path =
	TOP_TABLE("GPU time by call path", NS, "time", open_time, "value share count path");
const struct table_def table_untimed = TOP_TABLE(
	"Kernels in CUDA graphs recorded as a whole, one for each node and launch. Loops run more",
	COUNT, "kernels", open_untimed, "value path");
const struct table_def table_held_at_peak =
	TOP_TABLE("Memory at the peak, by call path", BYTES, "bytes", open_peak, "value path");
const struct table_def table_held_at_end =
	TOP_TABLE("Memory at the end, by call path", BYTES, "bytes", open_leaked, "value path");
const struct table_def table_held = TOP_TABLE("Memory at the peak and at the end, by call path",
					      BYTES, "bytes", open_peak, "value path");

static const struct column_def idle_columns[] = {
	COLUMN("gpu_idle_ns", NS, OTHER, "idle time of all GPUs"),
	COLUMN("class", TEXT, OTHER, "class of the cause"),
};

static void open_idle(struct table_rows *rows)
{
	const struct processes *processes = run_analysis(rows->run, &analysis_processes);
	uint64_t *sums_ns = rows->memory = xt_calloc(IDLE_CLASSES, sizeof(*sums_ns));

	rows->count = IDLE_CLASSES;
	for (size_t p = 0; p < processes->count; p++)
		for (size_t d = 0; d < processes->list[p].device_count; d++)
			for (int class = 0; class < IDLE_CLASSES; class ++)
				sums_ns[class] += processes->list[p].devices[d].idle_ns[class];
}

static void put_idle(struct table_rows *rows, size_t class, const void *record, struct cells *cells)
{
	(void)record;
	cells_put(cells, cell_number(((const uint64_t *)rows->memory)[class]));
	cells_put(cells, cell_text(idle_labels[class]));
}

const struct table_def table_idle = {
	.name = "idle",
	.json = "gpu_idle_by_class_ns",
	.form = FORM_MAP,
	.title = "Idle time by cause",
	.what = "Idle time of all GPUs by class of its cause.",
	HAS_COLUMNS(idle_columns),
	.view = "idle_by_class",
	.open = open_idle,
	.row = put_idle,
};
