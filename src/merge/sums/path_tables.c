/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and sorts the rows of tables.
 */
#include "merge/sums/path_tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "idle/idle.h"
#include "log/base/compare.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/exporter.h"
#include "merge/sums/processes.h"
#include "merge/sums/run.h"

COMPARE_BY(compare_rows, struct table_row, DOWN(value) DOWN(count) UP(id))

/* If a range takes as long as the one in it, the position in the tree puts the outer one first. */
COMPARE_BY(compare_ranges, struct table_row, DOWN(value) UP(id))

void table_paths(struct table *table, const struct paths *paths, enum weight weight)
{
	*table = (struct table){.rows = xt_calloc(paths->node_count, sizeof(*table->rows))};
	for (uint32_t n = 1; n < paths->node_count; n++)
		if (path_carries(&paths->nodes[n], weight))
			table->rows[table->count++] =
				(struct table_row){n, paths->nodes[n].weights[weight],
						   paths->nodes[n].weights[WEIGHT_COUNT]};
	qsort(table->rows, table->count, sizeof(*table->rows), compare_rows);
}

void table_leaves(struct table *table, const struct paths *paths)
{
	*table = (struct table){.rows = xt_calloc(paths->names.count, sizeof(*table->rows))};
	for (uint32_t n = 1; n < paths->node_count; n++) {
		const struct path_node *node = &paths->nodes[n];

		table->rows[node->name].id = node->name;
		table->rows[node->name].value += node->weights[WEIGHT_GPU_TIME];
		table->rows[node->name].count += node->weights[WEIGHT_COUNT];
	}
	for (uint32_t name = 0; name < paths->names.count; name++)
		if (table->rows[name].count)
			table->rows[table->count++] = table->rows[name];
	qsort(table->rows, table->count, sizeof(*table->rows), compare_rows);
}

void table_ranges(struct table *table, const struct run *run)
{
	const struct paths *ranges = &run->sums->ranges.tree;

	*table = (struct table){.rows = xt_calloc(ranges->node_count, sizeof(*table->rows))};
	/* Skip nodes that exist only because ranges overlapped without nesting. */
	for (uint32_t n = 1; n < ranges->node_count; n++)
		if (ranges->nodes[n].weights[WEIGHT_COUNT] ||
		    run->sums->ranges.sums.list[n].opened_count)
			table->rows[table->count++] =
				(struct table_row){n, ranges->nodes[n].weights[WEIGHT_GPU_TIME],
						   ranges->nodes[n].weights[WEIGHT_COUNT]};
	qsort(table->rows, table->count, sizeof(*table->rows), compare_ranges);
}

void table_free(struct table *table)
{
	free(table->rows);
	*table = (struct table){0};
}

void table_give(struct table *table, struct table_rows *rows)
{
	rows->memory = table->rows;
	table_records(rows, table->rows, table->count);
	*table = (struct table){0};
}

uint32_t path_own_frame(const struct paths *paths, uint32_t node, unsigned marks)
{
	size_t length;
	const char *leaf = names_text(&paths->names, paths->nodes[node].name, &length);

	leaf = leaf_kind(leaf, length) == WORK_KERNEL ? leaf + strlen(LEAF_KERNEL_MARK) : "";
	for (; node != PATH_ROOT; node = paths->nodes[node].parent) {
		uint32_t name = paths->nodes[node].name;

		if (by_id_get(paths->marks, name) & marks &&
		    strcmp(names_text(&paths->names, name, NULL), leaf) != 0)
			return name;
	}
	return NAME_EMPTY;
}

uint64_t table_sum(const struct paths *paths, enum weight weight)
{
	uint64_t sum = 0;

	for (uint32_t n = 1; n < paths->node_count; n++)
		sum += paths->nodes[n].weights[weight];
	return sum;
}

static bool is_idle_class(const char *name)
{
	for (int class = 0; class < IDLE_CLASSES; class ++)
		if (!strcmp(name, idle_labels[class]))
			return true;
	return false;
}

uint32_t path_of_idle_class(const struct paths *paths, uint32_t node)
{
	while (node != PATH_ROOT &&
	       !is_idle_class(names_text(&paths->names, paths->nodes[node].name, NULL)))
		node = paths->nodes[node].parent;
	return node;
}

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

	table_records(rows, paths->nodes, 0);
	for (uint32_t n = 1; n < paths->node_count; n++) {
		uint64_t any = 0;

		for (int w = 0; w < WEIGHTS; w++)
			any |= paths->nodes[n].weights[w];
		if (any)
			table_add(rows, n);
	}
}

static void put_path(struct table_rows *rows, struct cells *cells)
{
	cells_put(cells, cell_number(rows->index));
	cells_put(cells, cell_path(&rows->run->paths, (uint32_t)rows->index));
}

const struct table_def table_all_paths = {
	.name = "paths",
	.title = "Call paths",
	.what = "All call paths with their weights.",
	.json.form = FORM_NONE,
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

static void open_top(struct table_rows *rows)
{
	const struct table_def *def = rows->def;
	struct table table;

	table_paths(&table, &rows->run->paths,
		    def == &text_untimed	? WEIGHT_UNTIMED
		    : def == &text_held_at_peak ? WEIGHT_PEAK_BYTES
		    : def == &text_held_at_end	? WEIGHT_LEAKED_BYTES
						: WEIGHT_GPU_TIME);
	table_give(&table, rows);
}

static void put_top(struct table_rows *rows, struct cells *cells)
{
	const struct table_row *row = rows->record;

	cells_put(cells, cell_share(row->value, rows->run->sums->events.work.gpu_ns));
	cells_put(cells, cell_path(&rows->run->paths, row->id));
}

/* PyTorch's caching allocators have this in the names of their functions. */
static size_t cache_note(const struct run *run, const char *notes[NOTES_MAX])
{
	notes[0] = "PyTorch keeps freed memory to use it again. Its cache at the end is no leak.";
	for (uint32_t n = 0; n < run->paths.names.count; n++)
		if (strstr(names_text(&run->paths.names, n, NULL), "CachingAllocator"))
			return 1;
	return 0;
}

#define TOP_TABLE(title_text, type, head, shown, ...)                                              \
	{                                                                                          \
		.title = title_text, .columns = TOP_COLUMNS(type, head), .column_count = 4,        \
		.shows = shown, .open = open_top, .row = put_top, ##__VA_ARGS__                    \
	}

const struct table_def text_time_by_path =
	TOP_TABLE("GPU time by call path", NS, "time", "value share count path");
const struct table_def text_untimed = TOP_TABLE(
	"Kernels in CUDA graphs recorded as a whole, one for each node and launch. Loops run more",
	COUNT, "kernels", "value path");
const struct table_def text_held_at_peak =
	TOP_TABLE("Memory at the peak, by call path", BYTES, "bytes", "value path");
const struct table_def text_held_at_end = TOP_TABLE("Memory at the end, by call path", BYTES,
						    "bytes", "value path", .notes = cache_note);

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
		for (size_t d = 0; d < processes->list[p].devices.count; d++)
			for (int class = 0; class < IDLE_CLASSES; class ++)
				sums_ns[class] += processes->list[p].devices.list[d].idle_ns[class];
}

static void put_idle(struct table_rows *rows, struct cells *cells)
{
	cells_put(cells, cell_number(((const uint64_t *)rows->memory)[rows->index]));
	cells_put(cells, cell_text(idle_labels[rows->index]));
}

const struct table_def table_idle = {
	.name = "idle",
	.json.name = "gpu_idle_by_class_ns",
	.json.form = FORM_MAP,
	.title = "Idle time by cause",
	.what = "Idle time of all GPUs by class of its cause.",
	HAS_COLUMNS(idle_columns),
	.view = "idle_by_class",
	.open = open_idle,
	.row = put_idle,
};

/* Idle time with the same line of code and the same state. */
struct idle_row {
	uint32_t frame; /* name: the innermost frame of user code, else the innermost frame */
	uint32_t state; /* name: the label of the state; NAME_EMPTY: the thread ran */
	uint64_t ns;
};

static bool is_state(const char *text)
{
	return cpu_is_label(text) || !strcmp(text, FRAME_NOT_SAMPLED);
}

/* Describes the path below the class of a node. False if the CPU was not the cause. */
static bool describe(const struct paths *paths, uint32_t node, struct idle_row *row)
{
	uint32_t innermost = NAME_EMPTY;

	*row = (struct idle_row){.ns = paths->nodes[node].weights[WEIGHT_GPU_IDLE]};
	for (; node != PATH_ROOT; node = paths->nodes[node].parent) {
		uint32_t name = paths->nodes[node].name;
		const char *text = names_text(&paths->names, name, NULL);

		if (begins_with(text, "[idle: "))
			break;
		if (is_state(text)) {
			row->state = row->state == NAME_EMPTY ? name : row->state;
			continue;
		}
		innermost = innermost == NAME_EMPTY ? name : innermost;
		if (row->frame == NAME_EMPTY && paths_is_user_frame(paths, name))
			row->frame = name;
	}
	row->frame = row->frame == NAME_EMPTY ? innermost : row->frame;
	return row->frame != NAME_EMPTY || row->state != NAME_EMPTY;
}

COMPARE_BY(compare_keys, struct idle_row, UP(frame) UP(state))

static int compare_times(const void *a, const void *b)
{
	const struct idle_row *x = a, *y = b;

	return x->ns != y->ns ? (x->ns > y->ns ? -1 : 1) : compare_keys(a, b);
}

/* Sums equal rows, and sorts them by time. */
static void open_cpu_idle(struct table_rows *rows)
{
	const struct paths *paths = &rows->run->paths;
	struct idle_row *list = rows->memory = xt_calloc(paths->node_count, sizeof(*list));
	size_t count = 0, kept = 0;

	for (uint32_t n = PATH_ROOT + 1; n < paths->node_count; n++)
		if (paths->nodes[n].weights[WEIGHT_GPU_IDLE] && describe(paths, n, &list[count]))
			count++;
	qsort(list, count, sizeof(*list), compare_keys);
	for (size_t r = 1; r < count; r++) {
		if (compare_keys(&list[kept], &list[r]))
			list[++kept] = list[r];
		else
			list[kept].ns += list[r].ns;
	}
	table_records(rows, list, count ? kept + 1 : 0);
	qsort(list, rows->count, sizeof(*list), compare_times);
	for (size_t r = 0; r < rows->count; r++)
		saturating_add(&rows->whole, list[r].ns);
}

static const struct column_def cpu_idle_columns[] = {
	COLUMN("gpu_idle_ns", NS, FROM(idle_row, ns), "idle time of the GPU", HEAD("time", 12)),
	COLUMN("code", TEXT, OTHER, "code that the CPU ran, or that waited"),
	COLUMN("state", TEXT, OTHER, "state of its thread; empty: it ran"),
	COLUMN("share", SHARE, OTHER, "part of all such time", HEAD("share", 8), TEXT_ONLY),
	COLUMN("text", TEXT, OTHER, "code and state", LAST("CPU code"), TEXT_ONLY),
};

static void put_cpu_idle(struct table_rows *rows, struct cells *cells)
{
	const struct idle_row *row = rows->record;
	const struct names *names = &rows->run->paths.names;
	const char *code = names_text(names, row->frame, NULL);
	const char *state = names_text(names, row->state, NULL);

	cells_put(cells, cell_text(code));
	cells_put(cells, cell_text(state));
	cells_put(cells, cell_share(row->ns, rows->whole));
	cells_put(cells, cell_owned(rows, xt_asprintf("%s%s%s", code,
						      code[0] && state[0] ? " " : "", state)));
}

const struct table_def table_cpu_idle = {
	.name = "cpu_idle",
	.json.name = "cpu.idle",
	.json.form = FORM_LIST,
	.title = "GPU idle time by what the CPU did",
	.what = "GPU idle time by the code that the CPU ran, most first.",
	HAS_COLUMNS(cpu_idle_columns),
	.shows = "gpu_idle_ns share text",
	.open = open_cpu_idle,
	.row = put_cpu_idle,
};
