/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of NVTX ranges.
 */
#include "base/memory.h"
#include "merge/base/json.h"
#include "merge/sums/tables.h"
#include "merge/tables/table.h"

#define SEVERAL_CATEGORIES "[several]"

enum { OPENED, COUNT, TIME, SHARE, EXCLUSIVE, IDLE, WAIT, CATEGORY, PATH };

static const struct column_def columns[] = {
	[OPENED] = {"opened_count", CELL_COUNT, COLUMN_EVERYWHERE, "times that it was opened",
		    "opened", 12, 60},
	[COUNT] = {"count", CELL_COUNT, COLUMN_EVERYWHERE,
		   "kernels, copies and memsets submitted in it", "count", 12, 76},
	[TIME] = {"gpu_time_ns", CELL_NS, COLUMN_EVERYWHERE, "their time on the GPU", "time", 12},
	[SHARE] = {"share", CELL_SHARE, COLUMN_TEXT, "part of all GPU time", "share", 7},
	[EXCLUSIVE] = {"gpu_exclusive_ns", CELL_NS, COLUMN_DATA,
		       "the same, shared among overlapping work"},
	[IDLE] = {"gpu_idle_ns", CELL_NS, COLUMN_DATA, "idle time of the GPU that it caused"},
	[WAIT] = {"cpu_wait_ns", CELL_NS, COLUMN_DATA, "time that the CPU waited in it"},
	[CATEGORY] = {"category", CELL_TEXT, COLUMN_DATA,
		      "NVTX category, or \"" SEVERAL_CATEGORIES "\""},
	[PATH] = {"range", CELL_PATH, COLUMN_EVERYWHERE, "the range and those around it", "range",
		  .json = "ranges"},
};

static void open_rows(struct table_rows *rows)
{
	struct table *table = rows->memory = xt_calloc(1, sizeof(*table));

	table_ranges(table, rows->run);
	rows->state = table;
	rows->count = table->count;
}

static void close_rows(struct table_rows *rows)
{
	table_free(rows->memory);
}

static void put_row(struct table_rows *rows, size_t r, struct cell *cells)
{
	const struct table_row *row = &((const struct table *)rows->state)->rows[r];
	const struct path_node *node = &rows->run->sums->ranges.tree.nodes[row->id];
	const struct range_sums *sums = &rows->run->sums->ranges.sums[row->id];

	cells[OPENED].number = sums->opened_count;
	cells[COUNT].number = row->count;
	cells[TIME].number = row->value;
	cells[SHARE] = cell_share(row->value, rows->run->sums->events.work.gpu_ns);
	cells[EXCLUSIVE].number = node->weights[WEIGHT_GPU_EXCLUSIVE];
	cells[IDLE].number = node->weights[WEIGHT_GPU_IDLE];
	cells[WAIT].number = node->weights[WEIGHT_CPU_WAIT];
	if (sums->has_several_categories)
		cells[CATEGORY] = cell_text(SEVERAL_CATEGORIES);
	else if (sums->category != NAME_EMPTY)
		cells[CATEGORY] = cell_name(&rows->run->sums->ranges.tree.names, sums->category);
	else
		cells[CATEGORY] = CELL_ABSENT;
	cells[PATH] = cell_path(&rows->run->sums->ranges.tree, row->id);
}

static void put_payload(struct json *json, const struct table_rows *rows, size_t r)
{
	const struct table_row *row = &((const struct table *)rows->state)->rows[r];
	const struct range_payload *payload = &rows->run->sums->ranges.sums[row->id].payload;

	if (!payload->count)
		return;
	json_begin_object(json, "payload");
	json_u64(json, "count", payload->count);
	json_double(json, "min", payload->min);
	json_double(json, "max", payload->max);
	json_double(json, "sum", payload->sum);
	json_end_object(json);
}

const struct table_def table_ranges_def = {
	.name = "ranges",
	.title = "GPU time by NVTX range, including nested ranges",
	.what = "NVTX ranges, longest GPU time first.",
	HAS_COLUMNS(columns),
	SHOWS(TIME, SHARE, COUNT, OPENED, PATH),
	.view = "ranges",
	.open = open_rows,
	.cells = put_row,
	.close = close_rows,
	.json_rest = put_payload,
};
