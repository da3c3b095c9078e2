/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the summary JSON. Each has the total number of rows, because --top may limit them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/base/labels.h"
#include "merge/export/summary/summary_json_tables.h"
#include "merge/sums/anomalies.h"
#include "merge/sums/kernels.h"
#include "merge/sums/tables.h"
#include "merge/sums/trust.h"

#define SEVERAL_CATEGORIES "[several]"
#define PATH_ID_BYTES	   17

static size_t rows_shown(const struct json *json, size_t count)
{
	size_t top = json->rows_max ? json->rows_max : SUMMARY_TOP_DEFAULT;

	return count < top ? count : top;
}

/* Begins the rows, one per line. */
static void begin_rows(struct json *json)
{
	json_begin_array(json, "rows");
	json->lines_depth = json->depth;
}

static void begin_table(struct json *json, const char *key, size_t row_count)
{
	json_begin_object(json, key);
	json_u64(json, "row_count", row_count);
	begin_rows(json);
}

static void end_table(struct json *json)
{
	json_end_array(json);
	json->lines_depth = SUMMARY_LINES_DEPTH;
	json_end_object(json);
}

static void put_name(struct json *json, const char *key, const struct names *names, uint32_t name)
{
	size_t length;
	const char *text = names_text(names, name, &length);

	json_text(json, key, text, length);
}

/*
 * Writes the frames of a path, outermost first, without the leading frame root. NAME_EMPTY: no such
 * frame.
 */
static int put_frames_below(struct json *json, const char *key, const struct paths *paths,
			    uint32_t root, uint32_t node)
{
	uint32_t *chain = NULL;
	size_t capacity = 0;
	int depth = paths_chain(paths, node, &chain, &capacity);

	json_begin_array(json, key);
	if (root != NAME_EMPTY)
		put_name(json, NULL, &paths->names, root);
	for (int d = 0; d < depth; d++)
		put_name(json, NULL, &paths->names, paths->nodes[chain[d]].name);
	json_end_array(json);
	free(chain);
	return depth < 0 ? depth : 0;
}

int summary_json_path(struct json *json, const char *key, const struct paths *paths, uint32_t node)
{
	return put_frames_below(json, key, paths, NAME_EMPTY, node);
}

/*
 * Writes the id of a path, which depends on its text only: FNV-1a of 64 bits, in hexadecimal.
 * Returns 0 or -ENOMEM.
 */
static int format_path_id(char out[PATH_ID_BYTES], const struct paths *paths, uint32_t node)
{
	uint64_t hash = 0xcbf29ce484222325;
	size_t length;
	char *text = paths_text(paths, node, &length);

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3;
	snprintf(out, PATH_ID_BYTES, "%016" PRIx64, hash);
	free(text);
	return 0;
}

/* Marks the paths of the rows in is_used. */
static int put_weight(struct json *json, const struct run *run, enum weight weight,
		      uint8_t *is_used)
{
	const struct weight_spec *spec = &weight_specs[weight];
	char id[PATH_ID_BYTES];
	struct table table;
	int error = table_paths(&table, &run->paths, weight);

	if (error)
		return error;
	json_begin_object(json, spec->name);
	json_string(json, "unit", weight_unit(weight));
	json_u64(json, "total", table_sum(&run->paths, weight));
	begin_table(json, "paths", table.count);
	for (size_t r = 0; r < rows_shown(json, table.count) && !error; r++) {
		error = format_path_id(id, &run->paths, table.rows[r].id);
		if (error)
			break;
		is_used[table.rows[r].id] = true;
		json_begin_object(json, NULL);
		json_u64(json, "value", table.rows[r].value);
		json_string(json, "path", id);
		json_end_object(json);
	}
	end_table(json);
	json_end_object(json);
	table_free(&table);
	return error;
}

/* The frames of each path that is_used, by the path's id. */
static int put_paths(struct json *json, const struct run *run, const uint8_t *is_used)
{
	char id[PATH_ID_BYTES];
	int error = 0;

	json_begin_object(json, "paths");
	for (uint32_t n = 0; n < run->paths.node_count && !error; n++) {
		if (!is_used[n])
			continue;
		error = format_path_id(id, &run->paths, n);
		if (!error)
			error = summary_json_path(json, id, &run->paths, n);
	}
	json_end_object(json);
	return error;
}

int summary_json_weights(struct json *json, const struct run *run)
{
	uint8_t *is_used = calloc(run->paths.node_count, sizeof(*is_used));
	int error = is_used ? 0 : -ENOMEM;

	json_begin_object(json, "weights");
	for (int w = 0; w < WEIGHTS && !error; w++)
		if (run_listed_weights(run) >> w & 1)
			error = put_weight(json, run, (enum weight)w, is_used);
	json_end_object(json);
	if (!error)
		error = put_paths(json, run, is_used);
	free(is_used);
	return error;
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

static void put_durations(struct json *json, const struct kernel_row *row)
{
	uint64_t bars[HISTOGRAM_BARS_MAX];
	uint32_t bar_count = histogram_bars(&row->durations, row->min_ns, row->max_ns, bars);

	json_u64(json, "min_ns", row->min_ns);
	json_u64(json, "p50_ns", kernel_p50_ns(row));
	json_u64(json, "p99_ns", kernel_p99_ns(row));
	json_u64(json, "max_ns", row->max_ns);
	json_begin_array(json, "histogram");
	for (uint32_t b = 0; b < bar_count; b++)
		json_u64(json, NULL, bars[b]);
	json_end_array(json);
	if (row->launch_count) {
		json_u64(json, "launch_count", row->launch_count);
		json_u64(json, "shorter_than_launch_count", row->shorter_count);
	}
	if (row->shape)
		put_shape(json, row);
}

int summary_json_kernels(struct json *json, const struct run *run)
{
	const struct kernels *kernels = run_analysis(run, &analysis_kernels);
	struct table table;
	int error = table_leaves(&table, &run->paths);

	if (error)
		return error;
	begin_table(json, "kernels", table.count);
	for (size_t r = 0; r < rows_shown(json, table.count); r++) {
		const struct table_row *row = &table.rows[r];
		const struct kernel_row *kernel = kernels_find(kernels, row->id);
		size_t length;
		const char *name = names_text(&run->paths.names, row->id, &length);

		json_begin_object(json, NULL);
		json_string(json, "kind", leaf_kind_name(name, length));
		name = leaf_name(&run->paths, row->id, &length);
		json_text(json, "name", name, length);
		json_u64(json, "count", row->count);
		json_u64(json, "gpu_time_ns", row->value);
		if (kernel && kernel->count == row->count)
			put_durations(json, kernel);
		json_end_object(json);
	}
	end_table(json);
	table_free(&table);
	return 0;
}

static void put_payload(struct json *json, const struct range_payload *payload)
{
	json_begin_object(json, "payload");
	json_u64(json, "count", payload->count);
	json_double(json, "min", payload->min);
	json_double(json, "max", payload->max);
	json_double(json, "sum", payload->sum);
	json_end_object(json);
}

int summary_json_ranges(struct json *json, const struct run *run)
{
	struct table table;
	int error = table_ranges(&table, run);

	if (error)
		return error;
	begin_table(json, "ranges", table.count);
	for (size_t r = 0; r < rows_shown(json, table.count) && !error; r++) {
		const struct table_row *row = &table.rows[r];
		const struct path_node *node = &run->ranges.nodes[row->id];
		const struct range_sums *sums = &run->range_sums[row->id];

		json_begin_object(json, NULL);
		error = summary_json_path(json, "ranges", &run->ranges, row->id);
		json_u64(json, "opened_count", sums->opened_count);
		json_u64(json, "count", row->count);
		json_u64(json, "gpu_time_ns", row->value);
		json_u64(json, "gpu_exclusive_ns", node->weights[WEIGHT_GPU_EXCLUSIVE]);
		json_u64(json, "gpu_idle_ns", node->weights[WEIGHT_GPU_IDLE]);
		json_u64(json, "cpu_wait_ns", node->weights[WEIGHT_CPU_WAIT]);
		if (sums->has_several_categories)
			json_string(json, "category", SEVERAL_CATEGORIES);
		else if (sums->category != NAME_EMPTY)
			put_name(json, "category", &run->ranges.names, sums->category);
		if (sums->payload.count)
			put_payload(json, &sums->payload);
		json_end_object(json);
	}
	end_table(json);
	table_free(&table);
	return error;
}

void summary_json_calls(struct json *json, const struct run *run, const struct calls *calls)
{
	begin_table(json, "api_calls", calls->count);
	for (size_t r = 0; r < rows_shown(json, calls->count); r++) {
		const struct call_row *row = &calls->rows[r];

		json_begin_object(json, NULL);
		if (row->name == NAME_EMPTY)
			json_string(json, "name", "[other functions]");
		else
			put_name(json, "name", &run->paths.names, row->name);
		json_u64(json, "count", row->count);
		json_u64(json, "failed_count", row->failed_count);
		json_u64(json, "total_ns", row->total_ns);
		json_u64(json, "min_ns", row->min_ns);
		json_u64(json, "p99_ns", calls_p99_ns(row));
		json_u64(json, "max_ns", row->max_ns);
		json_end_object(json);
	}
	end_table(json);
}

int summary_json_failures(struct json *json, const struct run *run, const struct calls *calls)
{
	int error = 0;

	json_begin_object(json, "failed_calls");
	json_u64(json, "row_count", calls->failure_count);
	json_u64(json, "not_told_apart_count", calls->other_failure_count);
	begin_rows(json);
	for (size_t f = 0; f < rows_shown(json, calls->failure_count) && !error; f++) {
		const struct failure *failure = &calls->failures[f];
		const char *label = error_label(failure->result);

		json_begin_object(json, NULL);
		json_u64(json, "count", failure->count);
		json_u64(json, "error", failure->result);
		json_string(json, "error_name", label ? label : "");
		put_name(json, "name", &run->paths.names, failure->name);
		error = put_frames_below(json, "frames", &run->paths, failure->process,
					 failure->node);
		json_end_object(json);
	}
	end_table(json);
	return error;
}

void summary_json_transfers(struct json *json, const struct run *run)
{
	begin_table(json, "copies", run->transfers.count);
	for (size_t r = 0; r < rows_shown(json, run->transfers.count); r++) {
		const struct transfer_row *row = &run->transfers.rows[r];

		json_begin_object(json, NULL);
		json_string(json, "kind", row->is_memset ? "set" : "copy");
		put_name(json, "name", &run->paths.names, row->name);
		json_u64(json, "count", row->sum.count);
		json_u64(json, "bytes", row->sum.bytes);
		json_u64(json, "gpu_time_ns", row->sum.gpu_ns);
		json_end_object(json);
	}
	end_table(json);
}

void summary_json_memory(struct json *json, const struct run *run)
{
	begin_table(json, "memory", run->memory_row_count);
	for (size_t r = 0; r < run->memory_row_count; r++) {
		const struct memory_row *row = &run->memory[r];

		json_begin_object(json, NULL);
		put_name(json, "name", &run->paths.names, row->label);
		json_u64(json, "alloc_count", row->pool.alloc_count);
		json_u64(json, "alloc_bytes", row->pool.alloc_bytes);
		json_u64(json, "free_count", row->pool.free_count);
		json_u64(json, "peak_bytes", row->pool.peak_bytes);
		json_i64(json, "peak_at_ns", row->peak_ns);
		json_u64(json, "leaked_bytes", row->pool.live_bytes);
		json_end_object(json);
	}
	end_table(json);
}

/* Omits counts of 0, so an empty object means no anomalies. */
static void put_anomalies(struct json *json, const struct run *run)
{
	json_begin_object(json, "doubts");
	for (size_t d = 0; d < ANOMALIES; d++)
		if (anomaly_count(run, &anomalies[d]))
			json_u64(json, anomalies[d].name, anomaly_count(run, &anomalies[d]));
	json_end_object(json);
}

void summary_json_trust(struct json *json, const struct run *run)
{
	const struct trust *trust = run->trust;

	json_begin_object(json, "trust");
	json_string(json, "word", trust_level_name(trust->level));
	json_begin_array(json, "reasons");
	for (size_t r = 0; r < trust->reason_count; r++)
		json_string(json, NULL, trust->reasons[r]);
	json_end_array(json);
	json_begin_array(json, "lines");
	for (int l = 0; l < TRUST_LINES; l++)
		json_string(json, NULL, trust->lines[l]);
	json_end_array(json);
	json_bool(json, "complete", run->report->status == STATUS_OK);
	json_begin_object(json, "account");
	for (size_t a = 0; a < XT_ACCOUNTS; a++)
		if (run->accounts[a])
			json_u64(json, xt_accounts[a].name, run->accounts[a]);
	json_end_object(json);
	json_u64(json, "attributed_gpu_time_ns", run->attributed_gpu_ns);
	json_u64(json, "estimated_gpu_time_ns", run->estimated_gpu_ns);
	json_begin_object(json, "losses");
	for (unsigned l = 0; l < LOSS_COUNT; l++)
		if (run->losses[l])
			json_u64(json, losses_name(l), run->losses[l]);
	json_end_object(json);
	put_anomalies(json, run);
	json_begin_array(json, "nameless");
	for (size_t m = 0; m < run->unnamed_modules.count; m++) {
		json_begin_object(json, NULL);
		json_string(json, "module", run->unnamed_modules.list[m].path);
		json_u64(json, "places", run->unnamed_modules.list[m].place_count);
		json_end_object(json);
	}
	json_end_array(json);
	json_begin_array(json, "warnings");
	for (size_t w = 0; w < run->report->warning_count; w++)
		json_string(json, NULL, run->report->warnings[w]);
	json_end_array(json);
	json_end_object(json);
}
