/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTML page of a comparison. It is the page of src/report with other data (page/page.h). The
 * member "comparison" has everything except the flame graph. Names, weights and columns are those
 * of the page of a run (merge/export/html/html.h), with each weight for base and new.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "diff/compare/comparison.h"
#include "diff/output/diff_output.h"
#include "diff/output/flame_tree.h"
#include "diff/output/json_parts.h"
#include "diff/compare/row_text.h"
#include "diff/base/format.h"
#include "page/page.h"

#define CHANGE_BYTES 64
#define ROWS_MAX     2000 /* of a table */

static const char *const weight_names[FLAME_WEIGHTS] = {
	[FLAME_GPU_TIME] = "gpu-time",
	[FLAME_CALL_TIME] = "call-time",
};
static const char *const side_names[SIDES] = {[SIDE_BASE] = "base", [SIDE_NEW] = "new"};

static void add_sides(cJSON *parent, const struct diff_result *result)
{
	const struct comparison *c = result->comparison;
	cJSON *list = cJSON_AddArrayToObject(parent, "sides");

	for (int s = 0; s < SIDES; s++) {
		cJSON *side = json_add_object(list);
		const struct run_profile *run = comparison_first_run(c, (enum side)s);
		char argument[ARGUMENT_BYTES];

		cJSON_AddStringToObject(
			side, "argument",
			format_argument(argument, sizeof(argument), result->arguments[s]));
		cJSON_AddNumberToObject(side, "run_count", (double)c->side_counts[s]);
		if (!run)
			continue;
		cJSON_AddStringToObject(side, "program", run->title);
		cJSON_AddStringToObject(side, "command", run->command);
		cJSON_AddStringToObject(side, "host", run->host);
		cJSON_AddStringToObject(side, "device",
					run->device_count ? run->devices[0].name : "");
		cJSON_AddBoolToObject(side, "simulated_gpu", run->is_simulated);
		if (isfinite(run->clock_mhz))
			cJSON_AddNumberToObject(side, "clock_mhz", run->clock_mhz);
	}
}

static void add_rules(cJSON *parent, const struct verdict *verdict)
{
	cJSON *list = cJSON_AddArrayToObject(parent, "rules");

	for (size_t r = 0; r < verdict->result_count; r++) {
		const struct rule_result *result = &verdict->results[r];
		cJSON *rule = json_add_object(list);

		cJSON_AddStringToObject(rule, "rule", result->rule->text);
		cJSON_AddStringToObject(rule, "outcome", outcome_words[result->outcome]);
		cJSON_AddStringToObject(rule, "text", result->text);
	}
}

static void add_known(cJSON *object, const char *name, double value)
{
	if (isfinite(value))
		cJSON_AddNumberToObject(object, name, value);
}

static void add_row(cJSON *list, const struct comparison *c, const struct comparison_row *row,
		    uint32_t node)
{
	const struct effect *effect = &row->effects[METRIC_VALUE];
	const struct profile_entry *entry = change_entry(row);
	char change[CHANGE_BYTES], interval[INTERVAL_BYTES];
	cJSON *object = json_add_object(list), *place_list;
	const char *places[SOURCE_PLACES_MAX];
	size_t count = 0;

	cJSON_AddStringToObject(object, "level", row_level(row));
	cJSON_AddStringToObject(object, "note", row_basis_note(c, row));
	cJSON_AddStringToObject(object, "unit", json_units[row->unit]);
	json_add_frames(object, "frames", entry);
	if (level_specs[row->level].has_frames)
		count = source_places(entry, places);
	place_list = cJSON_AddArrayToObject(object, "places");
	for (size_t p = 0; p < count; p++)
		cJSON_AddItemToArray(place_list, cJSON_CreateString(places[p]));
	if (node)
		cJSON_AddNumberToObject(object, "node", node);
	add_known(object, "base", effect->base);
	add_known(object, "new", effect->new);
	add_known(object, "base_count", row->effects[METRIC_COUNT].base);
	add_known(object, "new_count", row->effects[METRIC_COUNT].new);
	cJSON_AddStringToObject(object, "doubt", effect_doubt(effect));
	cJSON_AddStringToObject(object, "interval", effect_interval(interval, effect));
	cJSON_AddStringToObject(object, "change", row_change_text(change, sizeof(change), row));
}

static void add_changes(cJSON *parent, const char *name, const struct comparison *c,
			const struct flame_tree *tree, bool of_paths)
{
	cJSON *list = cJSON_AddArrayToObject(parent, name);
	size_t count;
	const struct comparison_row **rows = changes_list(c, of_paths, &count);

	for (size_t r = 0; r < count && r < ROWS_MAX; r++)
		add_row(list, c, rows[r], tree->node_of_row[rows[r] - c->rows]);
	free(rows);
}

static void add_comparison(cJSON *document, const struct diff_result *result,
			   const struct flame_tree *tree)
{
	const struct comparison *c = result->comparison;
	cJSON *object = cJSON_AddObjectToObject(document, "comparison"), *totals;

	cJSON_AddStringToObject(object, "outcome", outcome_words[result->verdict->outcome]);
	cJSON_AddStringToObject(object, "values", comparison_values(c));
	cJSON_AddNumberToObject(object, "alpha", c->alpha);
	cJSON_AddBoolToObject(object, "measures_noise", comparison_measures_noise(c));
	cJSON_AddNumberToObject(
		object, "history_count",
		(double)(c->run_count - c->side_counts[SIDE_BASE] - c->side_counts[SIDE_NEW]));
	json_add_lines(object, "problems", &result->verdict->problems);
	json_add_lines(object, "notes", &result->verdict->notes);
	add_sides(object, result);
	add_rules(object, result->verdict);
	totals = cJSON_AddArrayToObject(object, "totals");
	for (size_t r = c->first_rows[LEVEL_TOTAL]; r < c->first_rows[LEVEL_TOTAL + 1]; r++)
		add_row(totals, c, &c->rows[r], 0);
	add_changes(object, "paths", c, tree, true);
	add_changes(object, "others", c, tree, false);
}

/* The distinct names of frames. Nodes refer to them by index. */
struct frame_names {
	const char **list; /* sorted */
	size_t count;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void collect_names(struct frame_names *names, const struct flame_tree *tree)
{
	size_t kept = 0;

	names->list = xt_calloc((size_t)tree->count + 1, sizeof(*names->list));
	for (uint32_t n = 1; n < tree->count; n++)
		names->list[names->count++] = tree->nodes[n].name;
	qsort(names->list, names->count, sizeof(*names->list), compare_names);
	for (size_t i = 0; i < names->count; i++)
		if (!kept || strcmp(names->list[kept - 1], names->list[i]))
			names->list[kept++] = names->list[i];
	names->count = kept;
}

static size_t place_of(const struct frame_names *names, const char *name)
{
	const char **found =
		bsearch(&name, names->list, names->count, sizeof(*names->list), compare_names);

	return (size_t)(found - names->list);
}

/* Writes each node as a sample without a device, thread or range. */
static void put_columns(struct page_columns *columns, const struct flame_tree *tree,
			const struct frame_names *names)
{
	static const char *const origins[] = {"sample.device", "sample.thread", "sample.range"};
	struct page_column *column = page_columns_add(columns, "node.depth");

	for (uint32_t n = 1; n < tree->count; n++)
		page_columns_put(columns, column, tree->nodes[n].depth);
	column = page_columns_add(columns, "node.name");
	for (uint32_t n = 1; n < tree->count; n++)
		page_columns_put(columns, column, place_of(names, tree->nodes[n].name));
	column = page_columns_add(columns, "sample.node");
	for (uint32_t n = 1; n < tree->count; n++)
		page_columns_put(columns, column, 1);
	for (size_t o = 0; o < sizeof(origins) / sizeof(origins[0]); o++) {
		column = page_columns_add(columns, "%s", origins[o]);
		for (uint32_t n = 1; n < tree->count; n++)
			page_columns_put(columns, column, 0);
	}
	for (int w = 0; w < FLAME_WEIGHTS; w++)
		for (int s = 0; s < SIDES; s++) {
			column = page_columns_add(columns, "weight.%s.%s", weight_names[w],
						  side_names[s]);
			for (uint32_t n = 1; n < tree->count; n++)
				page_columns_put(columns, column,
						 (uint64_t)round(tree->nodes[n].self[w][s]));
		}
}

/* The page shows the first weight by default, so new precedes base. */
static void add_weights(cJSON *document)
{
	cJSON *list = cJSON_AddArrayToObject(document, "weights");

	for (int w = 0; w < FLAME_WEIGHTS; w++)
		for (int s = SIDES; s-- > 0;) {
			cJSON *weight = json_add_object(list);

			cJSON_AddStringToObject(weight, "name", weight_names[w]);
			cJSON_AddStringToObject(weight, "unit", "ns");
			cJSON_AddStringToObject(weight, "side", side_names[s]);
			cJSON_AddNumberToObject(weight, "against",
						SIDES * w + (s == SIDE_NEW ? 1 : 0));
		}
}

static cJSON *make_document(const struct diff_result *result, const struct flame_tree *tree,
			    const struct frame_names *names, const struct page_columns *columns)
{
	static const char *const empty[] = {"devices", "threads", "ranges", "tracks"};
	cJSON *document = cJSON_CreateObject(), *list;

	cJSON_AddStringToObject(document, "format", "xtrace-comparison-page");
	cJSON_AddNumberToObject(document, "version", 1);
	cJSON_AddStringToObject(document, "generator", "xtrace " XTRACE_VERSION);
	for (size_t e = 0; e < sizeof(empty) / sizeof(empty[0]); e++)
		cJSON_AddArrayToObject(document, empty[e]);
	add_weights(document);
	list = cJSON_AddArrayToObject(document, "names");
	for (size_t n = 0; n < names->count; n++)
		cJSON_AddItemToArray(list, cJSON_CreateString(names->list[n]));
	list = cJSON_AddArrayToObject(document, "columns");
	for (size_t c = 0; c < columns->count; c++) {
		cJSON *column = json_add_object(list);

		cJSON_AddStringToObject(column, "name", columns->list[c].name);
		cJSON_AddNumberToObject(column, "bytes", (double)columns->list[c].used);
		cJSON_AddNumberToObject(column, "count", (double)columns->list[c].count);
	}
	add_comparison(document, result, tree);
	return document;
}

static void write_piece(void *context, const char *text, size_t length)
{
	fwrite(text, 1, length, context);
}

static int write_html(FILE *out, const struct diff_result *result)
{
	struct frame_names names = {0};
	struct page_columns columns = {0};
	struct flame_tree tree;
	cJSON *document = NULL;
	char *text = NULL;

	if (!result->comparison)
		return -ENODATA;
	flame_tree_make(&tree, result->comparison);
	collect_names(&names, &tree);
	put_columns(&columns, &tree, &names);
	document = make_document(result, &tree, &names, &columns);
	text = cJSON_PrintUnformatted(document);
	page_write(text, strlen(text), &columns, write_piece, out);
	cJSON_free(text);
	cJSON_Delete(document);
	page_columns_free(&columns);
	free(names.list);
	flame_tree_free(&tree);
	return 0;
}

const struct diff_output diff_output_html = {
	.name = "html",
	.what = "Write a page for the browser with a differential flame graph and tables",
	.value = "FILE",
	.write = write_html,
	.is_there = page_is_there,
};
