/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the page: the tree and its samples as columns, the document, and both into the template.
 * html_state.h describes the format.
 */
#include "merge/export/html/html_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/export/html/html_events_page.h"
#include "merge/export/html/html_tracks.h"
#include "merge/export/summary/summary_json.h"
#include "merge/export/summary/summary_json_tables.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/run.h"
#include "merge/sums/sums.h"

#define REPORT_VERSION	 1
#define PAGE_KERNELS_MAX 10000 /* smaller ones have only what the tree says */

/* The tree of call paths in the page. */
struct tree {
	uint32_t *numbers; /* by path node: depth-first number, from 1; 0: omitted */
	uint32_t *order;   /* by depth-first number - 1: path node */
	uint32_t count;
	uint32_t *names; /* by name of paths: index in the page + 1; 0: omitted */
	uint32_t *name_order;
	uint32_t name_count;
	bool has_other; /* HTML_OTHER follows as the last node */
};

static void free_tree(struct tree *tree)
{
	free_all(tree->numbers, tree->order, tree->names, tree->name_order);
}

/* Sets the number of nodes with samples, and of their ancestors, to 1. Parents precede children. */
static void mark_nodes(struct tree *tree, const struct html_choice *choice,
		       const struct paths *paths)
{
	for (size_t s = 0; s < choice->sample_count; s++)
		if (choice->samples[s].node != SAMPLE_LEFT_OUT)
			tree->numbers[choice->samples[s].node] = 1;
	for (uint32_t n = paths->node_count; n-- > 1;)
		if (tree->numbers[n])
			tree->numbers[paths->nodes[n].parent] = 1;
}

/* Numbers the nodes depth first, siblings in order of creation. */
static void walk(struct tree *tree, const struct paths *paths, const uint32_t *first_child,
		 const uint32_t *sibling)
{
	uint32_t node = first_child[PATH_ROOT];

	while (node != PATH_ROOT) {
		tree->order[tree->count++] = node;
		tree->numbers[node] = tree->count;
		if (first_child[node]) {
			node = first_child[node];
			continue;
		}
		while (node != PATH_ROOT && !sibling[node])
			node = paths->nodes[node].parent;
		if (node != PATH_ROOT)
			node = sibling[node];
	}
}

static void order_names(struct tree *tree, const struct paths *paths)
{
	for (uint32_t i = 0; i < tree->count; i++) {
		uint32_t name = paths->nodes[tree->order[i]].name;

		if (tree->names[name])
			continue;
		tree->name_order[tree->name_count++] = name;
		tree->names[name] = tree->name_count;
	}
}

static void make_tree(struct tree *tree, const struct html_choice *choice,
		      const struct paths *paths)
{
	uint32_t *first_child = xt_calloc(paths->node_count, sizeof(*first_child));
	uint32_t *sibling = xt_calloc(paths->node_count, sizeof(*sibling));

	tree->numbers = xt_calloc(paths->node_count, sizeof(*tree->numbers));
	tree->order = xt_calloc(paths->node_count, sizeof(*tree->order));
	tree->names = xt_calloc(paths->names.count, sizeof(*tree->names));
	tree->name_order = xt_calloc(paths->names.count, sizeof(*tree->name_order));
	mark_nodes(tree, choice, paths);
	for (uint32_t n = paths->node_count; n-- > 1;) {
		uint32_t parent = paths->nodes[n].parent;

		if (!tree->numbers[n])
			continue;
		sibling[n] = first_child[parent];
		first_child[parent] = n;
	}
	walk(tree, paths, first_child, sibling);
	order_names(tree, paths);
	free(first_child);
	free(sibling);
}

static void put_tree(struct page_columns *columns, const struct tree *tree,
		     const struct paths *paths)
{
	struct page_column *column = page_columns_add(columns, "node.depth");
	uint32_t *depths = xt_calloc((size_t)tree->count + 1, sizeof(*depths)); /* by number */

	for (uint32_t i = 0; i < tree->count; i++) {
		uint32_t parent = paths->nodes[tree->order[i]].parent;

		depths[i + 1] = (parent == PATH_ROOT ? 0 : depths[tree->numbers[parent]]) + 1;
		page_columns_put(columns, column, depths[i + 1]);
	}
	if (tree->has_other)
		page_columns_put(columns, column, 1);
	free(depths);
	column = page_columns_add(columns, "node.name");
	for (uint32_t i = 0; i < tree->count; i++)
		page_columns_put(columns, column,
				 tree->names[paths->nodes[tree->order[i]].name] - 1);
	if (tree->has_other)
		page_columns_put(columns, column, tree->name_count);
}

COMPARE_BY(compare_samples, struct sample, UP(number) UP(device) UP(thread) UP(range))

/* Sorts the samples by node number and merges samples with equal keys. */
static void merge_samples(struct html_choice *choice, const struct tree *tree)
{
	size_t kept = 0;

	for (size_t s = 0; s < choice->sample_count; s++)
		choice->samples[s].number = choice->samples[s].node == SAMPLE_LEFT_OUT
						    ? tree->count + 1
						    : tree->numbers[choice->samples[s].node];
	if (choice->sample_count)
		qsort(choice->samples, choice->sample_count, sizeof(*choice->samples),
		      compare_samples);
	for (size_t s = 0; s < choice->sample_count; s++) {
		const struct sample *sample = &choice->samples[s];

		if (!kept || compare_samples(&choice->samples[kept - 1], sample))
			choice->samples[kept++] = *sample;
		else
			for (int w = 0; w < WEIGHTS; w++)
				choice->samples[kept - 1].weights[w] += sample->weights[w];
	}
	choice->sample_count = kept;
}

static void put_samples(struct page_columns *columns, const struct html_choice *choice,
			uint32_t listed_weights)
{
	struct page_column *column = page_columns_add(columns, "sample.node");

	for (size_t s = 0; s < choice->sample_count; s++)
		page_columns_put(columns, column,
				 choice->samples[s].number -
					 (s ? choice->samples[s - 1].number : 0));
	column = page_columns_add(columns, "sample.device");
	for (size_t s = 0; s < choice->sample_count; s++)
		page_columns_put(columns, column, choice->samples[s].device);
	column = page_columns_add(columns, "sample.thread");
	for (size_t s = 0; s < choice->sample_count; s++)
		page_columns_put(columns, column, choice->samples[s].thread);
	column = page_columns_add(columns, "sample.range");
	for (size_t s = 0; s < choice->sample_count; s++)
		page_columns_put(columns, column, choice->samples[s].range);
	for (int w = 0; w < WEIGHTS; w++) {
		if (!(listed_weights >> w & 1))
			continue;
		column = page_columns_add(columns, "weight.%s", weight_specs[w].name);
		for (size_t s = 0; s < choice->sample_count; s++)
			page_columns_put(columns, column, choice->samples[s].weights[w]);
	}
}

static void put_labels(struct json *json, const char *key, const char *processes_key,
		       const struct html_labels *labels)
{
	json_begin_array(json, key);
	for (uint32_t n = NAME_EMPTY + 1; n < labels->names.count; n++) {
		size_t length;
		const char *text = names_text(&labels->names, n, &length);

		json_text(json, NULL, text, length);
	}
	json_end_array(json);
	json_begin_array(json, processes_key);
	for (uint32_t n = NAME_EMPTY + 1; n < labels->names.count; n++)
		json_u64(json, NULL, labels->origins[n].process);
	json_end_array(json);
}

static void put_range(struct json *json, uint32_t parent, const char *name, size_t length,
		      uint64_t opened_count)
{
	json_begin_object(json, NULL);
	json_u64(json, "parent", parent);
	json_text(json, "name", name, length);
	json_u64(json, "opened_count", opened_count);
	json_end_object(json);
}

static void put_ranges(struct json *json, const struct html *html, const struct html_choice *choice)
{
	json_begin_array(json, "ranges");
	for (uint32_t i = 0; i < choice->range_count; i++) {
		uint32_t range = choice->listed_ranges[i];
		const struct path_node *node = &html->ranges.nodes[range];
		size_t length;
		const char *text = names_text(&html->ranges.names, node->name, &length);

		put_range(json, choice->ranges[node->parent], text, length,
			  html->range_openings[range]);
	}
	if (choice->has_other_range)
		put_range(json, PATH_ROOT, HTML_OTHER, strlen(HTML_OTHER),
			  choice->other_range_openings);
	json_end_array(json);
}

static void put_lists(struct json *json, const struct html *html, const struct html_choice *choice,
		      const struct tree *tree, const struct paths *paths)
{
	json_begin_array(json, "names");
	for (uint32_t n = 0; n < tree->name_count; n++) {
		size_t length;
		const char *text = names_text(&paths->names, tree->name_order[n], &length);

		json_text(json, NULL, text, length);
	}
	if (tree->has_other)
		json_string(json, NULL, HTML_OTHER);
	json_end_array(json);
	json_begin_array(json, "own_names");
	for (uint32_t n = 0; n < tree->name_count; n++)
		if (paths_is_user_code(paths, tree->name_order[n]))
			json_u64(json, NULL, n);
	json_end_array(json);
	put_labels(json, "devices", "device_processes", &html->devices);
	put_labels(json, "threads", "thread_processes", &html->threads);
	put_ranges(json, html, choice);
}

static void put_loss_words(struct json *json, const struct run *run)
{
	json_begin_object(json, "loss_words");
	for (unsigned l = 0; l < LOSS_COUNT; l++)
		if (run->sums->losses.counts[l])
			json_string(json, losses_name(l), losses_what(l));
	json_end_object(json);
}

/*
 * The page adds up filtered kernels from the tree. Durations and shapes of the kernels, and the
 * table itself if paths are omitted, come from here.
 */
static void put_kernels(struct json *json, const struct run *run)
{
	json->rows_max = PAGE_KERNELS_MAX;
	table_put_json(json, run, &table_kernels);
}

static void put_document(struct output *out, struct html *html, const struct html_choice *choice,
			 const struct tree *tree, const struct run *run,
			 const struct page_columns *columns, const struct event_counts *events)
{
	struct json json = {.out = out};

	json_begin_object(&json, NULL);
	json_string(&json, "format", "xtrace-report");
	json_u64(&json, "version", REPORT_VERSION);
	json_u64(&json, "first_ns", html->first_ns == UINT64_MAX ? 0 : html->first_ns);
	json_u64(&json, "last_ns", html->last_ns);
	json_u64(&json, "left_out_path_count", choice->left_out_path_count);
	json_u64(&json, "left_out_gpu_time_ns", choice->left_out_gpu_ns);
	json_u64(&json, "left_out_range_count", choice->left_out_range_count);
	json_begin_array(&json, "weights");
	for (int w = 0; w < WEIGHTS; w++) {
		if (!(run_listed_weights(run) >> w & 1))
			continue;
		json_begin_object(&json, NULL);
		json_string(&json, "name", weight_specs[w].name);
		json_string(&json, "unit", weight_unit((enum weight)w));
		json_end_object(&json);
	}
	json_end_array(&json);
	json_begin_array(&json, "idle_classes");
	for (int class = 0; class < IDLE_CLASSES; class ++)
		json_string(&json, NULL, idle_labels[class]);
	json_end_array(&json);
	json_begin_array(&json, "cpu_states");
	for (int state = 0; state < XT_CPU_STATES; state++)
		json_string(&json, NULL, cpu_state_name((enum xt_cpu_state)state));
	json_end_array(&json);
	put_lists(&json, html, choice, tree, &run->paths);
	html_put_track_list(&json, html, choice->track_halvings);
	html_put_event_lists(&json, html, events);
	put_loss_words(&json, run);
	json_begin_array(&json, "columns");
	for (size_t c = 0; c < columns->count; c++) {
		json_begin_object(&json, NULL);
		json_string(&json, "name", columns->list[c].name);
		json_u64(&json, "bytes", columns->list[c].used);
		json_u64(&json, "count", columns->list[c].count);
		json_end_object(&json);
	}
	json_end_array(&json);
	summary_json_put(&json, "summary", run, false);
	put_kernels(&json, run);
	json_end_object(&json);
}

static void write_piece(void *context, const char *text, size_t length)
{
	output_text(context, text, length);
}

void html_make_page(struct output *out, struct html *html, struct html_choice *choice,
		    const struct run *run)
{
	struct page_columns columns = {0};
	struct tree tree = {.has_other = choice->left_out_path_count};
	struct event_counts events = {0};
	struct output document;
	struct output_bytes bytes;

	make_tree(&tree, choice, &run->paths);
	merge_samples(choice, &tree);
	put_tree(&columns, &tree, &run->paths);
	put_samples(&columns, choice, run_listed_weights(run));
	html_put_tracks(&columns, html, choice->track_halvings);
	html_put_events(&columns, html, choice->event_count, tree.numbers,
			tree.has_other ? tree.count + 1 : 0, choice->ranges, &events);
	output_open_memory(&document);
	put_document(&document, html, choice, &tree, run, &columns, &events);
	bytes = output_bytes(&document);
	page_write(bytes.data, bytes.length, &columns, write_piece, out);
	output_discard(&document);
	event_counts_free(&events);
	page_columns_free(&columns);
	free_tree(&tree);
}
