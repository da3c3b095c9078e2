/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flame graphs of a comparison: the HTML page, and folded stacks.
 *
 * The tree of call paths has the times of both sides. Rows are sorted by their frames, so paths
 * with a common prefix are adjacent, and the tree is in depth-first order.
 *
 * The page is that of src/report with other data (page/page.h). The member "comparison" has
 * everything except the flame graph. Names, weights and columns are those of the page of a run
 * (merge/export/html/html.h), with each weight for base and new.
 *
 * The folded stacks are those of difffolded.pl, which flamegraph.pl reads: "frame;frame;kernel 120
 * 130", with the GPU time of base and new in ns.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tables.h"
#include "diff/base/level.h"
#include "diff/compare/comparison.h"
#include "diff/compare/row_text.h"
#include "diff/output/diff_output.h"
#include "log/base/compare.h"
#include "page/page.h"

enum flame_weight {
	FLAME_GPU_TIME,	 /* of LEVEL_PATH */
	FLAME_CALL_TIME, /* of LEVEL_CALL */
	FLAME_WEIGHTS
};

struct flame_node {
	const char *name; /* frame for display */
	uint32_t parent;  /* index in the tree */
	uint32_t depth;	  /* 0: the root */

	double self[FLAME_WEIGHTS][SIDES]; /* of paths that end here, in ns */
};

/* Depth first, siblings by name. The first node is the root. The comparison owns the names. */
struct flame_tree {
	struct flame_node *nodes;
	uint32_t count;
	/* By row of the comparison: the node in which its path ends; 0: none. */
	uint32_t *node_of_row;
};

struct path {
	const struct profile_entry *entry;
	size_t row;
	enum flame_weight weight;
};

static int compare_paths(const void *a, const void *b)
{
	const struct path *x = a, *y = b;
	uint32_t x_count = x->entry->frame_count, y_count = y->entry->frame_count;
	int order = 0;

	for (uint32_t f = 0; !order && f < x_count && f < y_count; f++)
		order = strcmp(x->entry->frames[f], y->entry->frames[f]);
	return order ?: ORDER(x_count, y_count) ?: ORDER(x->row, y->row);
}

/*
 * Adds the frames that the path does not share with the previous path. Returns the node of the last
 * frame.
 */
static uint32_t insert_path(struct flame_tree *tree, uint32_t last,
			    const struct profile_entry *entry)
{
	uint32_t shared = 0, node = 0;
	uint32_t chain = last;

	/* Find the last node of the previous path that this path shares. */
	while (tree->nodes[chain].depth > entry->frame_count)
		chain = tree->nodes[chain].parent;
	for (uint32_t n = chain; n; n = tree->nodes[n].parent)
		if (strcmp(tree->nodes[n].name, entry->frames[tree->nodes[n].depth - 1]))
			chain = tree->nodes[n].parent;
	node = chain;
	shared = tree->nodes[chain].depth;
	for (uint32_t f = shared; f < entry->frame_count; f++) {
		tree->nodes[tree->count] = (struct flame_node){
			.name = entry->frames[f], .parent = node, .depth = f + 1};
		node = tree->count++;
	}
	return node;
}

static double known(double value)
{
	return isfinite(value) && value > 0 ? value : 0;
}

/* Free it with flame_tree_free(). */
static void flame_tree_make(struct flame_tree *tree, const struct comparison *comparison)
{
	static const enum level levels[FLAME_WEIGHTS] = {LEVEL_PATH, LEVEL_CALL};
	struct path *paths = xt_calloc(comparison->row_count + 1, sizeof(*paths));
	size_t count = 0, frame_count = 1;
	uint32_t node = 0;

	*tree = (struct flame_tree){
		.node_of_row = xt_calloc(comparison->row_count + 1, sizeof(*tree->node_of_row))};
	for (int w = 0; w < FLAME_WEIGHTS; w++) {
		size_t end = comparison->first_rows[levels[w] + 1];

		for (size_t r = comparison->first_rows[levels[w]]; r < end; r++) {
			const struct profile_entry *entry = change_entry(&comparison->rows[r]);

			paths[count++] = (struct path){entry, r, (enum flame_weight)w};
			frame_count += entry->frame_count;
		}
	}
	tree->nodes = xt_calloc(frame_count, sizeof(*tree->nodes));
	tree->nodes[tree->count++].name = "all";
	qsort(paths, count, sizeof(*paths), compare_paths);
	for (size_t p = 0; p < count; p++) {
		const struct effect *effect = &comparison->rows[paths[p].row].effects[METRIC_VALUE];

		node = insert_path(tree, node, paths[p].entry);
		tree->node_of_row[paths[p].row] = node;
		tree->nodes[node].self[paths[p].weight][SIDE_BASE] += known(effect->base);
		tree->nodes[node].self[paths[p].weight][SIDE_NEW] += known(effect->new);
	}
	free(paths);
}

static void flame_tree_free(struct flame_tree *tree)
{
	free_all(tree->nodes, tree->node_of_row);
	*tree = (struct flame_tree){0};
}

#define ROWS_MAX 2000 /* of a table */

static const char *const weight_names[FLAME_WEIGHTS] = {
	[FLAME_GPU_TIME] = "gpu-time",
	[FLAME_CALL_TIME] = "call-time",
};
static const char *const side_names[SIDES] = {[SIDE_BASE] = "base", [SIDE_NEW] = "new"};

static void put_known(struct json *json, const char *key, double value)
{
	if (isfinite(value))
		json_number(json, key, value);
}

static void put_sides(struct json *json, const struct diff_result *result)
{
	const struct comparison *c = result->comparison;

	json_begin_array(json, "sides");
	for (int s = 0; s < SIDES; s++) {
		const struct run_profile *run = comparison_first_run(c, (enum side)s);

		json_begin_object(json, NULL);
		json_string(json, "argument", format_argument(result->arguments[s]));
		json_u64(json, "run_count", c->side_counts[s]);
		if (run) {
			json_string(json, "program", run->title);
			json_string(json, "command", run->command);
			json_string(json, "host", run->machine.host);
			json_string(json, "device", run->machine.device);
			json_bool(json, "simulated_gpu", run->machine.is_simulated);
			put_known(json, "clock_mhz", run->machine.clock_mhz);
		}
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_rules(struct json *json, const struct verdict *verdict)
{
	json_begin_array(json, "rules");
	for (size_t r = 0; r < verdict->result_count; r++) {
		const struct rule_result *result = &verdict->results[r];

		json_begin_object(json, NULL);
		json_string(json, "rule", result->rule->text);
		json_string(json, "outcome", outcome_words[result->outcome]);
		json_string(json, "text", result->text);
		json_end_object(json);
	}
	json_end_array(json);
}

static void html_put_row(struct json *json, const struct comparison *c,
			 const struct comparison_row *row, uint32_t node)
{
	const struct effect *effect = &row->effects[METRIC_VALUE];
	const struct profile_entry *entry = change_entry(row);
	const char *places[SOURCE_PLACES_MAX];
	size_t count = 0;

	json_begin_object(json, NULL);
	json_string(json, "level", row_level(row));
	json_string(json, "note", row_basis_note(c, row));
	json_string(json, "unit", json_units[row->unit]);
	json_strings(json, "frames", entry->frames, entry->frame_count);
	if (level_specs[row->level].has_frames)
		count = source_places(entry, places);
	json_strings(json, "places", places, count);
	if (node)
		json_u64(json, "node", node);
	put_known(json, "base", effect->base);
	put_known(json, "new", effect->new);
	put_known(json, "base_count", row->effects[METRIC_COUNT].base);
	put_known(json, "new_count", row->effects[METRIC_COUNT].new);
	json_string(json, "doubt", effect_doubt(effect));
	json_string(json, "interval", effect_interval(effect));
	json_string(json, "change", row_change_text(row));
	json_end_object(json);
}

static void put_changes(struct json *json, const char *key, const struct comparison *c,
			const struct flame_tree *tree, bool of_paths)
{
	size_t count;
	const struct comparison_row **rows = changes_list(c, of_paths, &count);

	json_begin_array(json, key);
	for (size_t r = 0; r < count && r < ROWS_MAX; r++)
		html_put_row(json, c, rows[r], tree->node_of_row[rows[r] - c->rows]);
	json_end_array(json);
	free(rows);
}

static void put_comparison(struct json *json, const struct diff_result *result,
			   const struct flame_tree *tree)
{
	const struct comparison *c = result->comparison;

	json_begin_object(json, "comparison");
	json_string(json, "outcome", outcome_words[result->verdict->outcome]);
	json_string(json, "values", comparison_values(c));
	json_number(json, "alpha", c->alpha);
	json_bool(json, "measures_noise", comparison_measures_noise(c));
	json_u64(json, "history_count", c->run_count - c->judged_count);
	json_lines(json, "problems", &result->verdict->problems);
	json_lines(json, "notes", &result->verdict->notes);
	put_sides(json, result);
	put_rules(json, result->verdict);
	json_begin_array(json, "totals");
	for (size_t r = c->first_rows[LEVEL_TOTAL]; r < c->first_rows[LEVEL_TOTAL + 1]; r++)
		html_put_row(json, c, &c->rows[r], 0);
	json_end_array(json);
	put_changes(json, "paths", c, tree, true);
	put_changes(json, "others", c, tree, false);
	json_end_object(json);
}

/* Writes each node as a sample without a device, thread or range. names: numbers the frames. */
static void put_columns(struct page_columns *columns, const struct flame_tree *tree,
			struct interner *names)
{
	static const char *const origins[] = {"sample.device", "sample.thread", "sample.range"};
	struct page_column *column = page_columns_add(columns, "node.depth");
	bool is_new;

	for (uint32_t n = 1; n < tree->count; n++)
		page_column_put(column, tree->nodes[n].depth);
	column = page_columns_add(columns, "node.name");
	for (uint32_t n = 1; n < tree->count; n++) {
		const char *name = tree->nodes[n].name;

		page_column_put(column, xt_intern(names, name, strlen(name), &is_new) - 1);
	}
	column = page_columns_add(columns, "sample.node");
	for (uint32_t n = 1; n < tree->count; n++)
		page_column_put(column, 1);
	for (size_t o = 0; o < sizeof(origins) / sizeof(origins[0]); o++) {
		column = page_columns_add(columns, "%s", origins[o]);
		for (uint32_t n = 1; n < tree->count; n++)
			page_column_put(column, 0);
	}
	for (int w = 0; w < FLAME_WEIGHTS; w++)
		for (int s = 0; s < SIDES; s++) {
			column = page_columns_add(columns, "weight.%s.%s", weight_names[w],
						  side_names[s]);
			for (uint32_t n = 1; n < tree->count; n++)
				page_column_put(column, (uint64_t)round(tree->nodes[n].self[w][s]));
		}
}

/* The page shows the first weight by default, so new precedes base. */
static void put_weights(struct json *json)
{
	json_begin_array(json, "weights");
	for (int w = 0; w < FLAME_WEIGHTS; w++)
		for (int s = SIDES; s-- > 0;) {
			json_begin_object(json, NULL);
			json_string(json, "name", weight_names[w]);
			json_string(json, "unit", "ns");
			json_string(json, "side", side_names[s]);
			json_i64(json, "against", SIDES * w + (s == SIDE_NEW ? 1 : 0));
			json_end_object(json);
		}
	json_end_array(json);
}

static void put_document(struct output *out, const struct diff_result *result,
			 const struct flame_tree *tree, const struct interner *names,
			 const struct page_columns *columns)
{
	static const char *const empty[] = {"devices", "threads", "ranges", "tracks"};
	struct json json = {.out = out};
	size_t bytes;

	json_begin_document(&json, "xtrace-comparison-page", 1);
	for (size_t e = 0; e < sizeof(empty) / sizeof(empty[0]); e++)
		json_strings(&json, empty[e], NULL, 0);
	put_weights(&json);
	json_begin_array(&json, "names");
	for (uint32_t id = 1; id <= names->count; id++) {
		const char *name = interner_at(names, id, &bytes);

		json_text(&json, NULL, name, bytes);
	}
	json_end_array(&json);
	page_put_columns(&json, columns);
	put_comparison(&json, result, tree);
	json_end_object(&json);
}

int diff_output_html(struct output *out, const void *context)
{
	const struct diff_result *result = context;
	struct interner names = {0};
	struct page_columns columns = {0};
	struct output document;
	struct output_bytes bytes;
	struct flame_tree tree;

	if (!result->comparison)
		return -ENODATA;
	output_open_memory(&document);
	flame_tree_make(&tree, result->comparison);
	put_columns(&columns, &tree, &names);
	put_document(&document, result, &tree, &names, &columns);
	bytes = output_bytes(&document);
	/* Without the newline after the document. */
	page_write(out, bytes.data, bytes.length - 1, &columns);
	output_discard(&document);
	page_columns_free(&columns);
	interner_free(&names);
	flame_tree_free(&tree);
	return 0;
}

/* Replaces ';' and newlines, which separate frames and paths. */
static void put_frame(struct output *out, const char *frame)
{
	for (; *frame; frame++)
		output_char(out, *frame == ';' ? ':' : *frame == '\n' ? ' ' : *frame);
}

int diff_output_folded(struct output *out, const void *context)
{
	const struct diff_result *result = context;
	struct flame_tree tree;
	uint32_t *chain;

	if (!result->comparison)
		return -ENODATA;
	flame_tree_make(&tree, result->comparison);
	chain = xt_calloc(tree.count + 1, sizeof(*chain));
	for (uint32_t n = 1; n < tree.count; n++) {
		const struct flame_node *node = &tree.nodes[n];
		double base = round(node->self[FLAME_GPU_TIME][SIDE_BASE]);
		double new = round(node->self[FLAME_GPU_TIME][SIDE_NEW]);

		if (base == 0 && new == 0)
			continue;
		for (uint32_t m = n; m; m = tree.nodes[m].parent)
			chain[tree.nodes[m].depth] = m;
		for (uint32_t d = 1; d <= node->depth; d++) {
			put_frame(out, tree.nodes[chain[d]].name);
			output_char(out, d < node->depth ? ';' : ' ');
		}
		output_format(out, "%.0f %.0f\n", base, new);
	}
	free(chain);
	flame_tree_free(&tree);
	return 0;
}
