/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the page: the tree and its samples as columns, the document, and both into the template.
 * html_events.h describes the format.
 *
 * If the full page is larger than --html-size, it tries in this order:
 * 1. fewer single events
 * 2. coarser device tracks, if there are many
 * 3. fewer NVTX ranges
 * 4. fewer call paths
 *
 * The size of a page is known only after it is made, so this makes several.
 */
#include "merge/export/html/html_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "merge/export/summary/summary_json.h"
#include "merge/export/tables/table_writers.h"
#include "merge/sums/run.h"
#include "merge/sums/trust.h"

#define REPORT_VERSION	 1
#define PAGE_KERNELS_MAX 10000	    /* smaller ones have only what the tree says */
#define SAMPLE_LEFT_OUT	 UINT32_MAX /* its path is part of HTML_OTHER */

#define RANGES_LEAST 300 /* as many as the page's selection list shows */
#define TRIES_MAX    8
#define AIM	     0.97 /* share of the free room that the next try aims at */
#define GOOD	     0.9  /* share of the free room that ends the search */
#define KB	     1000
#define HALVINGS_MAX 5	/* leaves 128 bins per track */
#define TRACKS_MANY  16 /* fewer tracks keep their resolution */
#define TRACKS_SHARE 8	/* so do tracks that need less than this part of the room */

/*
 * Ranks call paths with any weight, and ranges, by their largest share of any weight.
 */
struct ranking {
	uint32_t *path_places; /* by path node: rank, 0 is the largest; UINT32_MAX: no weight */
	uint32_t path_count;
	uint32_t *range_places; /* by node of html->ranges: rank */
	uint32_t range_count;
};

/* The samples and ranges of a page. */
struct choice {
	struct sample *samples; /* node may be SAMPLE_LEFT_OUT; ranges are numbers of the page */
	size_t sample_count;
	uint32_t *ranges;	 /* by node of html->ranges: number in the page, from 1 */
	uint32_t *listed_ranges; /* by number in the page - 1: node of html->ranges */
	uint32_t range_count;
	bool has_other_range; /* HTML_OTHER follows as the last range */
	uint64_t other_range_openings;
	uint64_t left_out_path_count;
	uint64_t left_out_gpu_ns;
	uint64_t left_out_range_count;
};

struct ranked {
	double size;
	uint32_t node;
};

/* Largest first. Equal sizes keep their order, so no range precedes its parent. */
COMPARE_BY(compare_ranked, struct ranked, DOWN(size) UP(node))

/* Returns the largest share of any weight. */
static double size_of(const uint64_t weights[WEIGHTS], const double sums[WEIGHTS])
{
	double size = 0;

	for (int w = 0; w < WEIGHTS; w++) {
		double share = sums[w] > 0 ? (double)weights[w] / sums[w] : 0;

		size = share > size ? share : size;
	}
	return size;
}

/* Returns the rank of each node in rows; UINT32_MAX for others. */
static uint32_t *places_of(struct ranked *rows, size_t count, size_t node_count)
{
	uint32_t *places = xt_malloc(node_count * sizeof(*places));

	memset(places, 0xff, node_count * sizeof(*places));
	SORT(rows, count, compare_ranked);
	for (size_t r = 0; r < count; r++)
		places[rows[r].node] = (uint32_t)r;
	return places;
}

static void rank_paths(struct ranking *ranking, const struct paths *paths)
{
	struct ranked *rows = xt_calloc(paths->node_count, sizeof(*rows));
	double sums[WEIGHTS] = {0};
	uint32_t count = 0;

	for (uint32_t n = 1; n < paths->node_count; n++)
		for (int w = 0; w < WEIGHTS; w++)
			sums[w] += (double)paths->nodes[n].weights[w];
	for (uint32_t n = 1; n < paths->node_count; n++) {
		double size = size_of(paths->nodes[n].weights, sums);

		if (size > 0)
			rows[count++] = (struct ranked){size, n};
	}
	ranking->path_count = count;
	ranking->path_places = places_of(rows, count, paths->node_count);
	free(rows);
}

/* Sums up each range with its nested ranges, WEIGHTS numbers each. */
static uint64_t *add_up_ranges(const struct html *html, double sums[WEIGHTS])
{
	const struct paths *ranges = &html->ranges;
	uint64_t *all = xt_calloc((size_t)ranges->node_count * WEIGHTS, sizeof(*all));

	for (size_t s = 0; s < html->sample_count; s++)
		for (int w = 0; w < WEIGHTS; w++)
			all[(size_t)html->samples[s].range * WEIGHTS + (size_t)w] +=
				html->samples[s].weights[w];
	for (uint32_t r = ranges->node_count; r-- > 1;)
		for (size_t w = 0; w < WEIGHTS; w++)
			all[(size_t)ranges->nodes[r].parent * WEIGHTS + w] +=
				all[(size_t)r * WEIGHTS + w];
	for (size_t w = 0; w < WEIGHTS; w++)
		sums[w] = (double)all[w];
	return all;
}

static void rank_ranges(struct ranking *ranking, const struct html *html)
{
	uint32_t count = html->ranges.node_count;
	struct ranked *rows = xt_calloc(count, sizeof(*rows));
	double sums[WEIGHTS];
	uint64_t *all = add_up_ranges(html, sums);

	for (uint32_t r = 1; r < count; r++)
		rows[r - 1] = (struct ranked){size_of(&all[(size_t)r * WEIGHTS], sums), r};
	ranking->range_places = places_of(rows, count - 1, count);
	ranking->range_count = count - 1;
	free_all(rows, all);
}

/* Numbers the ranges of the page. An omitted range gets the number of its parent. */
static void choose_ranges(struct choice *choice, const struct html *html,
			  const struct ranking *ranking, uint32_t count)
{
	const struct paths *ranges = &html->ranges;
	bool has_other = false;

	choice->ranges = xt_calloc(ranges->node_count, sizeof(*choice->ranges));
	choice->listed_ranges = xt_calloc(ranges->node_count, sizeof(*choice->listed_ranges));
	for (uint32_t r = 1; r < ranges->node_count; r++) {
		if (ranking && ranking->range_places[r] >= count) {
			choice->left_out_range_count++;
			choice->ranges[r] = choice->ranges[ranges->nodes[r].parent];
			has_other |= !choice->ranges[r];
			continue;
		}
		choice->listed_ranges[choice->range_count++] = r;
		choice->ranges[r] = choice->range_count;
	}
	for (uint32_t r = 1; has_other && r < ranges->node_count; r++) {
		if (choice->ranges[r])
			continue;
		choice->ranges[r] = choice->range_count + 1;
		choice->other_range_openings += html->range_openings[r];
	}
	choice->has_other_range = has_other;
}

static void choose_samples(struct choice *choice, const struct html *html,
			   const struct ranking *ranking, uint32_t path_count)
{
	choice->samples = xt_calloc(html->sample_count + 1, sizeof(*choice->samples));
	choice->sample_count = html->sample_count;
	for (size_t s = 0; s < html->sample_count; s++) {
		struct sample *sample = &choice->samples[s];

		*sample = html->samples[s];
		sample->range = choice->ranges[sample->range];
		if (!ranking || path_count == ranking->path_count ||
		    ranking->path_places[sample->node] < path_count)
			continue;
		choice->left_out_gpu_ns += sample->weights[WEIGHT_GPU_TIME];
		sample->node = SAMPLE_LEFT_OUT;
	}
	if (ranking && path_count < ranking->path_count)
		choice->left_out_path_count = ranking->path_count - path_count;
}

/* Returns the first bin of the track after halving its resolution. */
static uint64_t first_bin(const struct bins *bins, uint32_t halvings)
{
	return bins->first >> halvings;
}

static uint32_t bin_count(const struct bins *bins, uint32_t halvings)
{
	if (!bins_used(bins))
		return 0;
	return (uint32_t)((bins->last >> halvings) - first_bin(bins, halvings) + 1);
}

static void put_track_list(struct json *json, const struct html *html, uint32_t halvings)
{
	json_u64(json, "track_left_out_count", html->chart_left_out_count);
	json_u64(json, "track_halvings", halvings);
	json_begin_array(json, "tracks");
	for (size_t t = 0; t < html->chart_count; t++) {
		const struct chart *chart = &html->charts[t];
		uint32_t width_bits = chart->bins.width_bits + halvings;

		json_begin_object(json, NULL);
		json_string(json, "name", names_text(&html->devices.names, chart->label, NULL));
		if (chart->counter) {
			json_string(json, "counter", chart->counter->name);
			json_string(json, "unit", chart->counter->unit);
		}
		json_u64(json, "bin_ns", (uint64_t)1 << width_bits);
		json_u64(json, "start_ns", first_bin(&chart->bins, halvings) << width_bits);
		json_u64(json, "bin_count", bin_count(&chart->bins, halvings));
		if (!chart->counter)
			json_u64(json, "span_ns", chart->until_ns[TRACK_WORK] - chart->from_ns);
		json_end_object(json);
	}
	json_end_array(json);
}

/* Most idle classes never occur. Their columns stay empty. */
static bool has_values(const uint64_t *values)
{
	for (uint32_t b = 0; b < BINS_COUNT; b++)
		if (values[b])
			return true;
	return false;
}

/* Writes one series: sums of time, or the maximum of a counter. */
static void put_series(struct page_column *column, const struct chart *chart,
		       const uint64_t *values, uint32_t halvings)
{
	const struct bins *bins = &chart->bins;
	uint64_t bin = first_bin(bins, halvings), value = 0;

	/* The last bin may be the largest number. */
	for (uint64_t b = 0; b < bins_used(bins); b++) {
		uint64_t here = values[b];

		if ((bins->first + b) >> halvings != bin) {
			page_column_put(column, value);
			bin = (bins->first + b) >> halvings;
			value = 0;
		}
		if (!chart->counter)
			value += here;
		else if (here > value)
			value = here;
	}
	page_column_put(column, value);
}

static void put_tracks(struct page_columns *columns, const struct html *html, uint32_t halvings)
{
	for (size_t t = 0; t < html->chart_count; t++) {
		const struct bins *bins = &html->charts[t].bins;

		for (unsigned s = 0; s < bins->series_count; s++) {
			const uint64_t *values = &bins->values[(size_t)s * BINS_COUNT];
			struct page_column *column =
				page_columns_add(columns, "track.%zu.%u", t, s);

			if (bins_used(bins) && has_values(values))
				put_series(column, &html->charts[t], values, halvings);
		}
	}
}

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

/* Sets the number of nodes with samples, and of their ancestors, to 1. Parents precede children. */
static void mark_nodes(struct tree *tree, const struct choice *choice, const struct paths *paths)
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

static void make_tree(struct tree *tree, const struct choice *choice, const struct paths *paths)
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
	free_all(first_child, sibling);
}

static void put_tree(struct page_columns *columns, const struct tree *tree,
		     const struct paths *paths)
{
	struct page_column *column = page_columns_add(columns, "node.depth");
	uint32_t *depths = xt_calloc((size_t)tree->count + 1, sizeof(*depths)); /* by number */

	for (uint32_t i = 0; i < tree->count; i++) {
		uint32_t parent = paths->nodes[tree->order[i]].parent;

		depths[i + 1] = (parent == PATH_ROOT ? 0 : depths[tree->numbers[parent]]) + 1;
		page_column_put(column, depths[i + 1]);
	}
	if (tree->has_other)
		page_column_put(column, 1);
	free(depths);
	column = page_columns_add(columns, "node.name");
	for (uint32_t i = 0; i < tree->count; i++)
		page_column_put(column, tree->names[paths->nodes[tree->order[i]].name] - 1);
	if (tree->has_other)
		page_column_put(column, tree->name_count);
}

COMPARE_BY(compare_samples, struct sample, UP(number) UP(device) UP(thread) UP(range))

/* Sorts the samples by node number and merges samples with equal keys. */
static void merge_samples(struct choice *choice, const struct tree *tree)
{
	size_t kept = 0;

	for (size_t s = 0; s < choice->sample_count; s++)
		choice->samples[s].number = choice->samples[s].node == SAMPLE_LEFT_OUT
						    ? tree->count + 1
						    : tree->numbers[choice->samples[s].node];
	SORT(choice->samples, choice->sample_count, compare_samples);
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

static void put_samples(struct page_columns *columns, const struct choice *choice,
			uint32_t listed_weights)
{
	struct page_column *column = page_columns_add(columns, "sample.node");

	for (size_t s = 0; s < choice->sample_count; s++)
		page_column_put(column, choice->samples[s].number -
						(s ? choice->samples[s - 1].number : 0));
	column = page_columns_add(columns, "sample.device");
	for (size_t s = 0; s < choice->sample_count; s++)
		page_column_put(column, choice->samples[s].device);
	column = page_columns_add(columns, "sample.thread");
	for (size_t s = 0; s < choice->sample_count; s++)
		page_column_put(column, choice->samples[s].thread);
	column = page_columns_add(columns, "sample.range");
	for (size_t s = 0; s < choice->sample_count; s++)
		page_column_put(column, choice->samples[s].range);
	for (int w = 0; w < WEIGHTS; w++) {
		if (!(listed_weights >> w & 1))
			continue;
		column = page_columns_add(columns, "weight.%s", weight_specs[w].name);
		for (size_t s = 0; s < choice->sample_count; s++)
			page_column_put(column, choice->samples[s].weights[w]);
	}
}

static void put_labels(struct json *json, const char *key, const char *processes_key,
		       const struct html_labels *labels)
{
	json_begin_array(json, key);
	for (uint32_t n = NAME_EMPTY + 1; n < labels->names.count; n++)
		json_name(json, NULL, &labels->names, n);
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

static void put_ranges(struct json *json, const struct html *html, const struct choice *choice)
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

static void put_lists(struct json *json, const struct html *html, const struct choice *choice,
		      const struct tree *tree, const struct paths *paths)
{
	json_begin_array(json, "names");
	for (uint32_t n = 0; n < tree->name_count; n++)
		json_name(json, NULL, &paths->names, tree->name_order[n]);
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
	/* Their messages begin with the count. */
	for (unsigned a = 0; a < ANOMALIES; a++)
		if (anomaly_count(run, &anomalies[a]))
			json_string(json, anomalies[a].name, anomalies[a].format + strlen("%s "));
	json_end_object(json);
}

/* Looks for the largest page that fits. */
struct fit {
	struct sink *sink;
	const struct run *run;
	struct ranking ranking;
	uint32_t path_count; /* of the current page */
	uint32_t range_count;
	uint32_t event_count; /* of each kind, at most */
	uint32_t track_halvings;
	struct output page;
	struct output_bytes bytes;
};

static void put_document(struct output *out, const struct fit *fit, const struct choice *choice,
			 const struct tree *tree, const struct page_columns *columns,
			 const struct event_counts *events)
{
	const struct html *html = fit->sink->state;
	const struct run *run = fit->run;
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
	json_strings(&json, "idle_classes", idle_labels, IDLE_CLASSES);
	json_begin_array(&json, "cpu_states");
	for (int state = 0; state < XT_CPU_STATES; state++)
		json_string(&json, NULL, cpu_state_name((enum xt_cpu_state)state));
	json_end_array(&json);
	put_lists(&json, html, choice, tree, &run->paths);
	put_track_list(&json, html, fit->track_halvings);
	html_put_event_lists(&json, html, events);
	put_loss_words(&json, run);
	page_put_columns(&json, columns);
	summary_json_put(&json, "summary", run, false);
	/*
	 * The page adds up filtered kernels from the tree. Durations and shapes of the kernels, and
	 * the table itself if paths are omitted, come from here.
	 */
	json.rows_max = PAGE_KERNELS_MAX;
	table_put_json(&json, run, &table_kernels);
	json_end_object(&json);
}

/* Makes the page with the largest paths and ranges, or all if ranking is NULL. */
static void make(struct fit *fit, const struct ranking *ranking)
{
	const struct html *html = fit->sink->state;
	const struct paths *paths = &fit->run->paths;
	struct page_columns columns = {0};
	struct event_counts events = {0};
	struct page_numbers numbers;
	struct output document;
	struct output_bytes bytes;
	struct choice choice = {0};
	struct tree tree;

	choose_ranges(&choice, html, ranking, fit->range_count);
	choose_samples(&choice, html, ranking, fit->path_count);
	tree = (struct tree){.has_other = choice.left_out_path_count};
	make_tree(&tree, &choice, paths);
	merge_samples(&choice, &tree);
	put_tree(&columns, &tree, paths);
	put_samples(&columns, &choice, run_listed_weights(fit->run));
	put_tracks(&columns, html, fit->track_halvings);
	numbers = (struct page_numbers){.nodes = tree.numbers,
					.ranges = choice.ranges,
					.other_node = tree.has_other ? tree.count + 1 : 0};
	html_put_events(&columns, html, fit->event_count, &numbers, &events);
	output_open_memory(&document);
	put_document(&document, fit, &choice, &tree, &columns, &events);
	bytes = output_bytes(&document);
	output_discard(&fit->page);
	output_open_memory(&fit->page);
	page_write(&fit->page, bytes.data, bytes.length, &columns);
	fit->bytes = output_bytes(&fit->page);
	output_discard(&document);
	event_counts_free(&events);
	page_columns_free(&columns);
	free_all(tree.numbers, tree.order, tree.names, tree.name_order);
	free_all(choice.samples, choice.ranges, choice.listed_ranges);
}

/*
 * The page is too large with *count. Finds about the largest count that fits, but not below least,
 * sets *count to it, and makes that page the current one.
 */
static void shrink(struct fit *fit, uint32_t *count, uint32_t least, size_t bytes_max)
{
	uint32_t most = *count;
	double above = (double)fit->bytes.length, below, room;

	*count = least;
	make(fit, &fit->ranking);
	below = (double)fit->bytes.length;
	room = (double)bytes_max - below; /* for everything above least */
	for (int try = 0; try < TRIES_MAX && most - least > 1; try++) {
		double left = (double)bytes_max - below;
		uint32_t next;

		if (room <= 0 || left < room * (1 - GOOD) || below >= above)
			break;
		/*
		 * Interpolation converges slowly if size is not linear, so bisect every other time.
		 */
		left = try % 2 ? (above - below) / 2 : left - room * (1 - AIM);
		next = least + (uint32_t)((double)(most - least) * left / (above - below));
		*count = next <= least ? least + 1 : next >= most ? most - 1 : next;
		make(fit, &fit->ranking);
		if (fit->bytes.length > bytes_max) {
			most = *count;
			above = (double)fit->bytes.length;
		} else {
			least = *count;
			below = (double)fit->bytes.length;
		}
	}
	if (*count == least)
		return;
	*count = least;
	make(fit, &fit->ranking);
}

/*
 * The page is too large even without call paths. Allow the call paths bytes_max on top of it, and
 * warn.
 */
static void exceed(struct fit *fit, size_t bytes_max)
{
	size_t bytes_least = fit->bytes.length;

	fit->path_count = fit->ranking.path_count;
	make(fit, &fit->ranking);
	if (fit->bytes.length > bytes_least + bytes_max)
		shrink(fit, &fit->path_count, 0, bytes_least + bytes_max);
	report_warn(fit->run->report,
		    "%s: the report takes %zu KB, more than --html-size: %zu KB of it cannot be "
		    "omitted",
		    fit->sink->out.path, fit->bytes.length / KB, bytes_least / KB);
}

/*
 * Halve the resolution while that helps. Each halving saves half of what the previous one saved, so
 * the remaining tracks are about as large as the last saving.
 */
static void make_coarser(struct fit *fit, size_t bytes_max)
{
	const struct html *html = fit->sink->state;
	size_t before = fit->bytes.length, saved = before;

	while (html->chart_count >= TRACKS_MANY && before > bytes_max &&
	       saved > bytes_max / TRACKS_SHARE && fit->track_halvings < HALVINGS_MAX) {
		fit->track_halvings++;
		make(fit, NULL);
		saved = before > fit->bytes.length ? before - fit->bytes.length : 0;
		before = fit->bytes.length;
	}
}

static void make_smaller(struct fit *fit, size_t bytes_max)
{
	rank_paths(&fit->ranking, &fit->run->paths);
	rank_ranges(&fit->ranking, fit->sink->state);
	fit->path_count = fit->ranking.path_count;
	fit->range_count = fit->ranking.range_count;
	if (fit->event_count)
		shrink(fit, &fit->event_count, 0, bytes_max);
	if (fit->bytes.length > bytes_max)
		make_coarser(fit, bytes_max);
	if (fit->bytes.length <= bytes_max)
		return;
	if (fit->range_count > RANGES_LEAST)
		shrink(fit, &fit->range_count, RANGES_LEAST, bytes_max);
	if (fit->bytes.length > bytes_max)
		shrink(fit, &fit->path_count, 0, bytes_max);
	if (fit->bytes.length > bytes_max)
		exceed(fit, bytes_max);
}

static uint32_t event_count_of(const struct html_events *events)
{
	size_t most = 0;

	for (int list = 0; list < EVENT_LISTS; list++)
		most = larger(most, events->lists[list].count);
	return (uint32_t)smaller(most, UINT32_MAX);
}

void html_put_page(struct sink *sink, const struct run *run)
{
	struct html *html = sink->state;
	struct fit fit = {.sink = sink, .run = run, .page.fd = -1};
	size_t bytes_max = sink->settings->html_bytes_max;

	html_events_find_waits(html, run_analysis(run, &analysis_processes));
	html_events_sort(&html->events);
	fit.event_count = event_count_of(&html->events);
	make(&fit, NULL);
	if (fit.bytes.length > bytes_max)
		make_smaller(&fit, bytes_max);
	output_text(&sink->out, fit.bytes.data, fit.bytes.length);
	output_discard(&fit.page);
	free_all(fit.ranking.path_places, fit.ranking.range_places);
}
