/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of all call paths, of the largest ones by weight, and of idle time by class.
 */
#include <string.h>

#include "base/memory.h"
#include "idle/idle.h"
#include "merge/sums/tables.h"
#include "merge/tables/table.h"

enum { ID, FIRST_WEIGHT, PATH = FIRST_WEIGHT + WEIGHTS };

#define WEIGHT_COLUMN(weight, ...) [FIRST_WEIGHT + (weight)] = {__VA_ARGS__}

static const struct column_def path_columns[] = {
	[ID] = {"id", CELL_CODE, COLUMN_DATA, "number of the path, as in SQLite"},
	WEIGHT_COLUMN(WEIGHT_GPU_TIME, "gpu_time_ns", CELL_NS, COLUMN_DATA, "time on the GPU"),
	WEIGHT_COLUMN(WEIGHT_COUNT, "count", CELL_COUNT, COLUMN_DATA,
		      "kernels, copies and memsets"),
	WEIGHT_COLUMN(WEIGHT_CPU_WAIT, "cpu_wait_ns", CELL_NS, COLUMN_DATA,
		      "time that the CPU waited for the GPU"),
	WEIGHT_COLUMN(WEIGHT_GPU_EXCLUSIVE, "gpu_exclusive_ns", CELL_NS, COLUMN_DATA,
		      "time on the GPU, shared among overlapping work"),
	WEIGHT_COLUMN(WEIGHT_GPU_IDLE, "gpu_idle_ns", CELL_NS, COLUMN_DATA,
		      "idle time of the GPU that it caused"),
	WEIGHT_COLUMN(WEIGHT_ALLOC_BYTES, "alloc_bytes", CELL_BYTES, COLUMN_DATA,
		      "bytes allocated"),
	WEIGHT_COLUMN(WEIGHT_PEAK_BYTES, "peak_bytes", CELL_BYTES, COLUMN_DATA,
		      "bytes held at the peak"),
	WEIGHT_COLUMN(WEIGHT_LEAKED_BYTES, "leaked_bytes", CELL_BYTES, COLUMN_DATA,
		      "bytes never freed"),
	WEIGHT_COLUMN(WEIGHT_CPU_TIME, "cpu_time_ns", CELL_NS, COLUMN_DATA,
		      "time of threads on a CPU"),
	WEIGHT_COLUMN(WEIGHT_OFF_CPU, "off_cpu_ns", CELL_NS, COLUMN_DATA,
		      "time of threads off a CPU"),
	WEIGHT_COLUMN(WEIGHT_COLLECTIVE_WAIT, "collective_wait_ns", CELL_NS, COLUMN_DATA,
		      "waits for other ranks in collectives"),
	WEIGHT_COLUMN(WEIGHT_COLLECTIVE_CAUSE, "collective_cause_ns", CELL_NS, COLUMN_DATA,
		      "waits of other ranks that it caused"),
	WEIGHT_COLUMN(WEIGHT_UNTIMED, "untimed_launches", CELL_COUNT, COLUMN_DATA,
		      "kernels in CUDA graphs recorded as a whole"),
	[PATH] = {"path", CELL_PATH, COLUMN_DATA, "call path"},
};

_Static_assert(sizeof(path_columns) / sizeof(*path_columns) == WEIGHTS + 2 && WEIGHTS == 13,
	       "each weight has a column");

static void open_paths(struct table_rows *rows)
{
	const struct paths *paths = &rows->run->paths;

	for (uint32_t n = 1; n < paths->node_count; n++) {
		uint64_t any = 0;

		for (int w = 0; w < WEIGHTS; w++)
			any |= paths->nodes[n].weights[w];
		if (any)
			table_add(rows, n);
	}
}

static void put_path(struct table_rows *rows, size_t r, struct cell *cells)
{
	uint32_t node = (uint32_t)table_index(rows, r);
	const struct paths *paths = &rows->run->paths;

	cells[ID].number = node;
	for (int w = 0; w < WEIGHTS; w++)
		cells[FIRST_WEIGHT + w].number = paths->nodes[node].weights[w];
	cells[PATH] = cell_path(paths, node);
}

const struct table_def table_all_paths = {
	.name = "paths",
	.title = "Call paths",
	.what = "All call paths with their weights.",
	HAS_COLUMNS(path_columns),
	.view = "path",
	.open = open_paths,
	.cells = put_path,
};

enum { TOP_VALUE, TOP_SHARE, TOP_COUNT, TOP_PATH };

#define TOP_COLUMNS(type, head)                                                                    \
	(const struct column_def[])                                                                \
	{                                                                                          \
		[TOP_VALUE] = {"value", type, COLUMN_TEXT, "its weight", head, 12},                \
		[TOP_SHARE] = {"share", CELL_SHARE, COLUMN_TEXT, "part of all GPU time",           \
			       "share", 7},                                                        \
		[TOP_COUNT] = {"count", CELL_COUNT, COLUMN_TEXT, "kernels, copies and memsets",    \
			       "count", 12,	    60},                                           \
		[TOP_PATH] = {"path", CELL_PATH, COLUMN_TEXT, "call path", "call path"},           \
	}

static void open_top(struct table_rows *rows, enum weight weight)
{
	struct table *table = rows->memory = xt_calloc(1, sizeof(*table));

	if (table_paths(table, &rows->run->paths, weight) < 0)
		xt_out_of_memory(0);
	rows->state = table;
	rows->count = table->count;
}

static void close_top(struct table_rows *rows)
{
	table_free(rows->memory);
}

static void put_top(struct table_rows *rows, size_t r, struct cell *cells)
{
	const struct table_row *row = &((const struct table *)rows->state)->rows[r];

	cells[TOP_VALUE].number = row->value;
	cells[TOP_SHARE] = cell_share(row->value, rows->run->sums->events.work.gpu_ns);
	cells[TOP_COUNT].number = row->count;
	cells[TOP_PATH] = cell_path(&rows->run->paths, row->id);
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

#define TOP_TABLE(title_text, type, head, open_rows, ...)                                          \
	{                                                                                          \
		.title = title_text, .columns = TOP_COLUMNS(type, head),                           \
		.column_count = TOP_PATH + 1, SHOWS(__VA_ARGS__), .open = open_rows,               \
		.cells = put_top, .close = close_top                                               \
	}

const struct table_def table_time_by_path =
	TOP_TABLE("GPU time by call path", CELL_NS, "time", open_time, TOP_VALUE, TOP_SHARE,
		  TOP_COUNT, TOP_PATH);
const struct table_def table_untimed = TOP_TABLE(
	"Kernels in CUDA graphs recorded as a whole, one for each node and launch. Loops run more",
	CELL_COUNT, "kernels", open_untimed, TOP_VALUE, TOP_PATH);
const struct table_def table_held_at_peak = TOP_TABLE(
	"Memory at the peak, by call path", CELL_BYTES, "bytes", open_peak, TOP_VALUE, TOP_PATH);
const struct table_def table_held_at_end = TOP_TABLE("Memory at the end, by call path", CELL_BYTES,
						     "bytes", open_leaked, TOP_VALUE, TOP_PATH);
const struct table_def table_held = TOP_TABLE("Memory at the peak and at the end, by call path",
					      CELL_BYTES, "bytes", open_peak, TOP_VALUE, TOP_PATH);

enum { IDLE_NS, IDLE_CLASS };

static const struct column_def idle_columns[] = {
	[IDLE_NS] = {"gpu_idle_ns", CELL_NS, COLUMN_DATA, "idle time of all GPUs"},
	[IDLE_CLASS] = {"class", CELL_TEXT, COLUMN_DATA, "class of the cause"},
};

static void open_idle(struct table_rows *rows)
{
	const struct paths *paths = &rows->run->paths;
	uint64_t *sums_ns = rows->memory = xt_calloc(IDLE_CLASSES, sizeof(*sums_ns));

	rows->state = sums_ns;
	rows->count = IDLE_CLASSES;
	for (uint32_t n = 1; n < paths->node_count; n++) {
		uint64_t ns = paths->nodes[n].weights[WEIGHT_GPU_IDLE];
		const char *name;

		if (!ns)
			continue;
		name = names_text(&paths->names, paths->nodes[path_of_idle_class(paths, n)].name,
				  NULL);
		for (int class = 0; class < IDLE_CLASSES; class ++)
			if (!strcmp(name, idle_labels[class]))
				sums_ns[class] += ns;
	}
}

static void put_idle(struct table_rows *rows, size_t r, struct cell *cells)
{
	cells[IDLE_NS].number = ((const uint64_t *)rows->state)[r];
	cells[IDLE_CLASS] = cell_text(idle_labels[r]);
}

const struct table_def table_idle = {
	.name = "idle",
	.title = "Idle time by cause",
	.what = "Idle time of all GPUs by class of its cause.",
	HAS_COLUMNS(idle_columns),
	.view = "idle_by_class",
	.open = open_idle,
	.cells = put_idle,
};
