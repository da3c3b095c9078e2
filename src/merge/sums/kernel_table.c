/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernels, copies and memsets by name.
 */
#include "base/memory.h"
#include "merge/base/json.h"
#include "merge/base/labels.h"
#include "merge/sums/kernels.h"
#include "merge/sums/tables.h"
#include "merge/tables/table.h"

struct kernel_table {
	struct table leaves;
	const struct kernels *kernels; /* NULL: no output needs durations */
};

enum { KIND, COUNT, TIME, SHARE, MIN, P50, P99, MAX, LAUNCHES, SHORTER, NAME };

static const struct column_def columns[] = {
	[KIND] = {"kind", CELL_WORD, COLUMN_DATA, "kernel, collective, copy or set"},
	[COUNT] = {"count", CELL_COUNT, COLUMN_EVERYWHERE, "kernels, copies or memsets", "count",
		   12, 60},
	[TIME] = {"gpu_time_ns", CELL_NS, COLUMN_EVERYWHERE, "time on the GPU", "time", 12},
	[SHARE] = {"share", CELL_SHARE, COLUMN_TEXT, "part of all GPU time", "share", 7},
	[MIN] = {"min_ns", CELL_NS, COLUMN_DATA, "shortest"},
	[P50] = {"p50_ns", CELL_NS, COLUMN_DATA, "half of them are not longer"},
	[P99] = {"p99_ns", CELL_NS, COLUMN_DATA, "99 % of them are not longer"},
	[MAX] = {"max_ns", CELL_NS, COLUMN_DATA, "longest"},
	[LAUNCHES] = {"launch_count", CELL_COUNT, COLUMN_DATA,
		      "those with a known launch of their own"},
	[SHORTER] = {"shorter_than_launch_count", CELL_COUNT, COLUMN_DATA,
		     "of these: shorter than the call that launched them"},
	[NAME] = {"name", CELL_TEXT, COLUMN_EVERYWHERE, "kernel, copy or memset", "kernel"},
};

static void open_rows(struct table_rows *rows)
{
	struct kernel_table *state = rows->memory = xt_calloc(1, sizeof(*state));

	if (table_leaves(&state->leaves, &rows->run->paths) < 0)
		xt_out_of_memory(0);
	state->kernels = run_analysis(rows->run, &analysis_kernels);
	rows->state = state;
	rows->count = state->leaves.count;
}

static void close_rows(struct table_rows *rows)
{
	table_free(&((struct kernel_table *)rows->memory)->leaves);
}

/* Returns the durations of a row, or NULL if they do not cover all of it. */
static const struct kernel_row *durations_of(const struct table_rows *rows, size_t r)
{
	const struct kernel_table *state = rows->state;
	const struct table_row *leaf = &state->leaves.rows[r];
	const struct kernel_row *kernel =
		state->kernels ? kernels_find(state->kernels, leaf->id) : NULL;

	return kernel && kernel->count == leaf->count ? kernel : NULL;
}

static void put_row(struct table_rows *rows, size_t r, struct cell *cells)
{
	const struct kernel_table *state = rows->state;
	const struct table_row *leaf = &state->leaves.rows[r];
	const struct kernel_row *kernel = durations_of(rows, r);
	const struct paths *paths = &rows->run->paths;
	size_t length;
	const char *name = names_text(&paths->names, leaf->id, &length);

	cells[KIND] = cell_text(leaf_kind_name(name, length));
	cells[COUNT].number = leaf->count;
	cells[TIME].number = leaf->value;
	cells[SHARE] = cell_share(leaf->value, rows->run->sums->events.work.gpu_ns);
	cells[NAME].text = leaf_name(paths, leaf->id, &cells[NAME].length);
	for (size_t c = MIN; c <= SHORTER; c++)
		cells[c].is_absent = !kernel || (c >= LAUNCHES && !kernel->launch_count);
	if (!kernel)
		return;
	cells[MIN].number = kernel->min_ns;
	cells[P50].number = kernel_p50_ns(kernel);
	cells[P99].number = kernel_p99_ns(kernel);
	cells[MAX].number = kernel->max_ns;
	cells[LAUNCHES].number = kernel->launch_count;
	cells[SHORTER].number = kernel->shorter_count;
}

static void put_sides(struct json *json, const char *key, const uint32_t sides[3])
{
	json_begin_array(json, key);
	for (int i = 0; i < 3; i++)
		json_u64(json, NULL, sides[i]);
	json_end_array(json);
}

static void put_occupancy(struct json *json, const struct occupancy *occupancy)
{
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

static void put_shape(struct json *json, const struct kernel_row *row)
{
	const struct shape *shape = &row->shape->shape;

	json_u64(json, "shape_count", row->shape_count);
	put_sides(json, "grid", shape->grid);
	put_sides(json, "block", shape->block);
	json_u64(json, "register_count", shape->registers);
	json_u64(json, "static_shared_bytes", shape->static_shared_bytes);
	json_u64(json, "dynamic_shared_bytes", shape->dynamic_shared_bytes);
	if (row->shape->occupancy.warps)
		put_occupancy(json, &row->shape->occupancy);
}

static void put_more(struct json *json, const struct table_rows *rows, size_t r)
{
	const struct kernel_row *kernel = durations_of(rows, r);
	uint64_t bars[HISTOGRAM_BARS_MAX];
	uint32_t bar_count;

	if (!kernel)
		return;
	bar_count = histogram_bars(&kernel->durations, kernel->min_ns, kernel->max_ns, bars);
	json_begin_array(json, "histogram");
	for (uint32_t b = 0; b < bar_count; b++)
		json_u64(json, NULL, bars[b]);
	json_end_array(json);
	if (kernel->shape)
		put_shape(json, kernel);
}

const struct table_def table_kernels = {
	.name = "kernels",
	.title = "GPU time by kernel, copy and memset",
	.what = "Kernels, copies and memsets by name, longest time first.",
	HAS_COLUMNS(columns),
	SHOWS(TIME, SHARE, COUNT, NAME),
	.view = "kernels",
	.open = open_rows,
	.cells = put_row,
	.close = close_rows,
	.json_rest = put_more,
};
