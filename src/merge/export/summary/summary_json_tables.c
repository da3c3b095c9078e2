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
#include "merge/export/tables/table_writers.h"
#include "merge/naming/run_names.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"
#include "merge/sums/tables.h"
#include "merge/sums/trust.h"

#define PATH_ID_BYTES 17

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

int summary_json_path(struct json *json, const char *key, const struct paths *paths, uint32_t node)
{
	const struct cell cell = cell_path(paths, node);

	return table_put_json_path(json, key, &cell);
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
	for (size_t r = 0; r < table_rows_shown(json, table.count) && !error; r++) {
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
		if (run->sums->losses.accounts[a])
			json_u64(json, xt_accounts[a].name, run->sums->losses.accounts[a]);
	json_end_object(json);
	json_u64(json, "attributed_gpu_time_ns", run->sums->events.work.attributed_gpu_ns);
	json_u64(json, "estimated_gpu_time_ns", run->sums->sampling.estimated_gpu_ns);
	table_put_json(json, run, &table_losses);
	table_put_json(json, run, &table_doubts);
	json_begin_array(json, "nameless");
	for (size_t m = 0; m < run->naming->unnamed_modules.count; m++) {
		json_begin_object(json, NULL);
		json_string(json, "module", run->naming->unnamed_modules.list[m].path);
		json_u64(json, "places", run->naming->unnamed_modules.list[m].place_count);
		json_end_object(json);
	}
	json_end_array(json);
	json_begin_array(json, "warnings");
	for (size_t w = 0; w < run->report->warning_count; w++)
		json_string(json, NULL, run->report->warnings[w]);
	json_end_array(json);
	json_end_object(json);
}
