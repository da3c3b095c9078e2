/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the tables of NVTX ranges and of copies and memsets.
 */
#include "base/json.h"
#include "merge/sums/path_tables.h"
#include "merge/sums/run.h"
#include "merge/tables/table.h"

#define SEVERAL_CATEGORIES "[several]"

static const struct column_def range_columns[] = {
	COLUMN("opened_count", COUNT, OTHER, "times that it was opened", WIDE("opened", 12, 60)),
	COLUMN("count", COUNT, FROM(table_row, count),
	       "kernels, copies and memsets submitted in it", WIDE("count", 12, 76)),
	COLUMN("gpu_time_ns", NS, FROM(table_row, value), "their time on the GPU",
	       HEAD("time", 12)),
	COLUMN("share", SHARE, OTHER, "part of all GPU time", HEAD("share", 7), TEXT_ONLY),
	COLUMN("gpu_exclusive_ns", NS, OTHER, "the same, shared among overlapping work"),
	COLUMN("gpu_idle_ns", NS, OTHER, "idle time of the GPU that it caused"),
	COLUMN("cpu_wait_ns", NS, OTHER, "time that the CPU waited in it"),
	COLUMN("category", TEXT, OTHER, "NVTX category, or `" SEVERAL_CATEGORIES "`", OPTIONAL),
	COLUMN("range", PATH, OTHER, "the range and those around it", LAST("range"),
	       .json = "ranges"),
};

static void open_ranges(struct table_rows *rows)
{
	struct table table;

	table_ranges(&table, rows->run);
	table_give(&table, rows);
}

static struct cell cell_category(const struct run *run, const struct range_sums *sums)
{
	if (sums->has_several_categories)
		return cell_text(SEVERAL_CATEGORIES);
	return sums->category == NAME_EMPTY
		       ? CELL_ABSENT
		       : cell_name(&run->sums->ranges.tree.names, sums->category);
}

static void put_range(struct table_rows *rows, struct cells *cells)
{
	const struct table_row *row = rows->record;
	const struct path_node *node = &rows->run->sums->ranges.tree.nodes[row->id];
	const struct range_sums *sums = &rows->run->sums->ranges.sums.list[row->id];

	cells_put(cells, cell_number(sums->opened_count));
	cells_put(cells, cell_share(row->value, rows->run->sums->events.work.gpu_ns));
	cells_put(cells, cell_number(node->weights[WEIGHT_GPU_EXCLUSIVE]));
	cells_put(cells, cell_number(node->weights[WEIGHT_GPU_IDLE]));
	cells_put(cells, cell_number(node->weights[WEIGHT_CPU_WAIT]));
	cells_put(cells, cell_category(rows->run, sums));
	cells_put(cells, cell_path(&rows->run->sums->ranges.tree, row->id));
}

static void put_payload(struct json *json, const struct table_rows *rows)
{
	const struct table_row *row = rows->record;
	const struct range_payload *payload = &rows->run->sums->ranges.sums.list[row->id].payload;

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
	HAS_COLUMNS(range_columns),
	.shows = "gpu_time_ns share count opened_count range",
	.view = "ranges",
	.open = open_ranges,
	.row = put_range,
	.json.more = put_payload,
};

static const struct column_def transfer_columns[] = {
	COLUMN("kind", WORD, OTHER, "copy or set"),
	COLUMN("count", COUNT, FROM(transfer_row, sum.count), "copies or memsets",
	       WIDE("count", 12, 64)),
	COLUMN("bytes", BYTES, FROM(transfer_row, sum.bytes), "bytes copied or set",
	       HEAD("bytes", 12)),
	COLUMN("gpu_time_ns", NS, FROM(transfer_row, sum.gpu_ns), "time on the GPU",
	       HEAD("time", 12)),
	COLUMN("bandwidth", BANDWIDTH, OTHER, "bytes by time", WIDE("bandwidth", 14, 76),
	       TEXT_ONLY),
	COLUMN("name", TEXT, OTHER, "direction, or kind of memory", LAST("direction")),
};

OPEN_LIST(open_transfers, rows->run->sums->transfers)

static void put_transfer(struct table_rows *rows, struct cells *cells)
{
	const struct transfer_row *row = rows->record;

	cells_put(cells, cell_text(row->is_memset ? "set" : "copy"));
	cells_put(cells,
		  row->sum.gpu_ns ? cell_share(row->sum.bytes, row->sum.gpu_ns) : CELL_ABSENT);
	cells_put(cells, cell_name(&rows->run->paths.names, row->name));
}

const struct table_def table_transfers = {
	.name = "copies",
	.title = "Copies and memsets",
	.what = "Copies by direction and memsets by kind of memory, longest time first.",
	HAS_COLUMNS(transfer_columns),
	.shows = "gpu_time_ns count bytes bandwidth name",
	.view = "copies",
	.open = open_transfers,
	.row = put_transfer,
};
