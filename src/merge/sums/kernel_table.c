/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernels, copies and memsets by name.
 */
#include "base/memory.h"
#include "base/json.h"
#include "merge/base/labels.h"
#include "merge/sums/kernels.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/sums/tables.h"
#include "merge/tables/table.h"

struct kernel_table {
	struct table leaves;
	const struct kernels *kernels; /* NULL: no output needs durations */
};

static const struct column_def columns[] = {
	COLUMN("kind", WORD, OTHER, "kernel, collective, copy or set"),
	COLUMN("count", COUNT, FROM(table_row, count), "kernels, copies or memsets",
	       WIDE("count", 12, 60)),
	COLUMN("gpu_time_ns", NS, FROM(table_row, value), "time on the GPU", HEAD("time", 12)),
	COLUMN("share", SHARE, OTHER, "part of all GPU time", HEAD("share", 7), TEXT_ONLY),
	COLUMN("min_ns", NS, OTHER, "shortest", OPTIONAL),
	COLUMN("p50_ns", NS, OTHER, "half of them are not longer; exact to 1 %", OPTIONAL),
	COLUMN("p99_ns", NS, OTHER, "99 % of them are not longer; exact to 1 %", OPTIONAL),
	COLUMN("max_ns", NS, OTHER, "longest", OPTIONAL),
	COLUMN("launch_count", COUNT, OTHER,
	       "those whose own launch is in the log, so not those "
	       "of graphs",
	       OPTIONAL),
	COLUMN("shorter_than_launch_count", COUNT, OTHER,
	       "of these: shorter than the time that "
	       "the CPU spent in the launch call",
	       OPTIONAL),
	COLUMN("histogram", NUMBERS, OTHER,
	       "how many took how long. The ranges between `min_ns` and "
	       "`max_ns` have equal ratios",
	       OPTIONAL),
	COLUMN("shape_count", COUNT, OTHER,
	       "different combinations of grid, block, registers and "
	       "shared memory",
	       OPTIONAL),
	COLUMN("grid", NUMBERS, OTHER, "blocks in the most frequent of these shapes", OPTIONAL),
	COLUMN("block", NUMBERS, OTHER, "threads of its blocks", OPTIONAL),
	COLUMN("register_count", COUNT, OTHER, "registers of a thread", OPTIONAL),
	COLUMN("static_shared_bytes", BYTES, OTHER,
	       "shared memory of a block that the kernel "
	       "declares",
	       OPTIONAL),
	COLUMN("dynamic_shared_bytes", BYTES, OTHER,
	       "shared memory of a block that the launch adds", OPTIONAL),
	COLUMN("name", TEXT, OTHER, "kernel, copy or memset", LAST("kernel")),
};

static void open_rows(struct table_rows *rows)
{
	struct kernel_table *state = rows->memory = xt_calloc(1, sizeof(*state));

	if (table_leaves(&state->leaves, &rows->run->paths) < 0)
		xt_out_of_memory(0);
	state->kernels = run_analysis(rows->run, &analysis_kernels);
	table_records(rows, state->leaves.rows, state->leaves.count);
}

static void close_rows(struct table_rows *rows)
{
	table_free(&((struct kernel_table *)rows->memory)->leaves);
}

/* Returns the durations of a row, or NULL if they do not cover all of it. */
static const struct kernel_row *durations_of(const struct table_rows *rows,
					     const struct table_row *leaf)
{
	const struct kernel_table *state = rows->memory;
	const struct kernel_row *kernel =
		state->kernels ? kernels_find(state->kernels, leaf->id) : NULL;

	return kernel && kernel->count == leaf->count ? kernel : NULL;
}

static struct cell cell_histogram(struct table_rows *rows, const struct kernel_row *kernel)
{
	struct cell_list list = {0};
	uint64_t bars[HISTOGRAM_BARS_MAX];
	uint32_t count = histogram_bars(&kernel->durations, kernel->min_ns, kernel->max_ns, bars);

	for (uint32_t b = 0; b < count; b++)
		list_add_number(&list, bars[b]);
	return cell_list(rows, &list);
}

static struct cell cell_sides(struct table_rows *rows, const uint32_t sides[3])
{
	struct cell_list list = {0};

	for (int i = 0; i < 3; i++)
		list_add_number(&list, sides[i]);
	return cell_list(rows, &list);
}

static void put_row(struct table_rows *rows, struct cells *cells)
{
	const struct table_row *leaf = rows->record;
	const struct kernel_row *kernel = durations_of(rows, leaf);
	const struct paths *paths = &rows->run->paths;
	struct cell figures[13];
	size_t length;
	const char *name = names_text(&paths->names, leaf->id, &length);

	for (size_t f = 0; f < 13; f++)
		figures[f] = CELL_ABSENT;
	if (kernel) {
		figures[0] = cell_number(kernel->min_ns);
		figures[1] = cell_number(kernel_p50_ns(kernel));
		figures[2] = cell_number(kernel_p99_ns(kernel));
		figures[3] = cell_number(kernel->max_ns);
		figures[6] = cell_histogram(rows, kernel);
	}
	if (kernel && kernel->launch_count) {
		figures[4] = cell_number(kernel->launch_count);
		figures[5] = cell_number(kernel->shorter_count);
	}
	if (kernel && kernel->shape) {
		figures[7] = cell_number(kernel->shape_count);
		figures[8] = cell_sides(rows, kernel->shape->shape.grid);
		figures[9] = cell_sides(rows, kernel->shape->shape.block);
		figures[10] = cell_number(kernel->shape->shape.registers);
		figures[11] = cell_number(kernel->shape->shape.static_shared_bytes);
		figures[12] = cell_number(kernel->shape->shape.dynamic_shared_bytes);
	}
	cells_put(cells, cell_text(leaf_kind_name(name, length)));
	cells_put(cells, cell_share(leaf->value, rows->run->sums->events.work.gpu_ns));
	for (size_t f = 0; f < 13; f++)
		cells_put(cells, figures[f]);
	name = leaf_name(paths, leaf->id, &length);
	cells_put(cells, (struct cell){.text = name, .length = length});
}

static void put_occupancy(struct json *json, const struct table_rows *rows)
{
	const struct kernel_row *kernel = durations_of(rows, rows->record);
	const struct occupancy *occupancy =
		kernel && kernel->shape ? &kernel->shape->occupancy : NULL;

	if (!occupancy || !occupancy->warps)
		return;
	json_begin_object(json, "occupancy");
	json_u64(json, "warp_count", occupancy->warps);
	json_u64(json, "warp_max_count", occupancy->warps_max);
	json_begin_array(json, "limiters");
	for (int l = 0; l < OCCUPANCY_LIMITS; l++)
		if (occupancy->limiters >> l & 1)
			json_string(json, NULL, occupancy_limit_names[l]);
	json_end_array(json);
	json_end_object(json);
}

const struct table_def table_kernels = {
	.name = "kernels",
	.title = "GPU time by kernel, copy and memset",
	.what = "Kernels, copies and memsets by name, longest time first.",
	HAS_COLUMNS(columns),
	.shows = "gpu_time_ns share count name",
	.view = "kernels",
	.open = open_rows,
	.row = put_row,
	.close = close_rows,
	.json_more = put_occupancy,
};
