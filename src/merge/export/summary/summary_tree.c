/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree as text: a flame graph for the terminal. Small frames are omitted. If nearly all of
 * a frame belongs to one child, both share a line with the value of the first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "merge/base/text.h"
#include "merge/export/summary/summary_tree.h"
#include "merge/export/summary/summary_path.h"
#include "merge/export/summary/summary_text.h"
#include "merge/sums/tables.h"

#define ROWS_PER_TOP   3   /* per row of the other tables */
#define SHARE_MIN      100 /* omit less than 1/100 of the total */
#define JOIN_SHARE     10  /* "nearly all" is all but 1/10 */
#define BAR_COLUMNS    16
#define BAR_NARROW     8 /* below WIDE_COLUMNS; no bar below NARROW_COLUMNS */
#define WIDE_COLUMNS   100
#define NARROW_COLUMNS 60
#define INDENT	       2
#define INDENT_MAX     40
#define TITLE_BYTES    96
#define INDENT_SHARE   6 /* indent at most 1/6 of the line */

static const struct column tree_columns[] = {{"time", 12, 0, false}, {"share", 7, 0, false}};
static const struct column sum_columns[] = {{"sum", 12, 0, false}, {"share", 7, 0, false}};

#define TREE_COLUMNS (sizeof(tree_columns) / sizeof(tree_columns[0]))

struct tree {
	const struct paths *paths;
	uint64_t *totals; /* by node, including descendants */
	uint32_t *first_child;
	uint32_t *sibling;
	uint64_t least; /* threshold: smaller nodes have no line */
	enum weight weight;
	uint64_t whole;
	int bar_columns;
	uint32_t *chain; /* nodes that share the current line */
	size_t chain_capacity;
};

static int compare_values(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

static bool is_nearly_all(uint64_t part, uint64_t whole)
{
	return part >= whole - whole / JOIN_SHARE;
}

/* A frame has its own line unless it has nearly all of its parent's weight. */
static bool has_line(const struct tree *tree, uint32_t node)
{
	uint32_t parent = tree->paths->nodes[node].parent;

	return tree->totals[node] &&
	       (parent == PATH_ROOT || !is_nearly_all(tree->totals[node], tree->totals[parent]));
}

/*
 * Returns the child that shares the line of node: the only visible child, with nearly all of the
 * weight. 0 if none.
 */
static uint32_t joined_child(const struct tree *tree, uint32_t node)
{
	uint32_t found = 0;

	for (uint32_t c = tree->first_child[node]; c; c = tree->sibling[c]) {
		if (tree->totals[c] < tree->least || !tree->totals[c])
			continue;
		if (found || !is_nearly_all(tree->totals[c], tree->totals[node]))
			return 0;
		found = c;
	}
	return found;
}

/* Chooses the threshold that limits the number of lines. Returns 0 or -ENOMEM. */
static int choose_least(struct tree *tree, size_t row_count)
{
	uint64_t *values = calloc(tree->paths->node_count, sizeof(*values));
	size_t count = 0;

	if (!values)
		return -ENOMEM;
	for (uint32_t n = 1; n < tree->paths->node_count; n++)
		if (has_line(tree, n))
			values[count++] = tree->totals[n];
	qsort(values, count, sizeof(*values), compare_values);
	tree->least = tree->whole / SHARE_MIN;
	if (count > row_count && values[row_count - 1] > tree->least)
		tree->least = values[row_count - 1];
	free(values);
	return 0;
}

static int make_tree(struct tree *tree, const struct paths *paths, size_t row_count)
{
	tree->totals = calloc(paths->node_count, sizeof(*tree->totals));
	tree->first_child = calloc(paths->node_count, sizeof(*tree->first_child));
	tree->sibling = calloc(paths->node_count, sizeof(*tree->sibling));
	if (!tree->totals || !tree->first_child || !tree->sibling)
		return -ENOMEM;
	/* Parents precede children, so a backward pass adds up complete subtrees. */
	for (uint32_t n = paths->node_count; n-- > 1;) {
		uint32_t parent = paths->nodes[n].parent;

		tree->totals[n] += paths->nodes[n].weights[tree->weight];
		tree->totals[parent] += tree->totals[n];
		tree->sibling[n] = tree->first_child[parent];
		tree->first_child[parent] = n;
	}
	tree->whole = tree->totals[PATH_ROOT];
	return choose_least(tree, row_count);
}

static void put_bar(struct output *out, int columns, uint64_t part, uint64_t whole)
{
	static const char *const eighths[] = {" ",
					      "\xe2\x96\x8f",
					      "\xe2\x96\x8e",
					      "\xe2\x96\x8d",
					      "\xe2\x96\x8c",
					      "\xe2\x96\x8b",
					      "\xe2\x96\x8a",
					      "\xe2\x96\x89",
					      "\xe2\x96\x88"};
	double filled = (double)part / (double)whole * columns * 8;

	put_style(out, STYLE_BAR);
	for (int c = 0; c < columns; c++) {
		int rest = (int)(filled + 0.5) - c * 8;
		const char *eighth = eighths[rest < 0 ? 0 : rest > 8 ? 8 : rest];

		output_text(out, eighth, strlen(eighth));
	}
	put_style(out, STYLE_PLAIN);
}

/* Collects the nodes that share a line with node. Returns their number or -ENOMEM. */
static int join(struct tree *tree, uint32_t node)
{
	int count = 0;

	for (; node; node = joined_child(tree, node)) {
		if (grow(&tree->chain, &tree->chain_capacity, (size_t)count + 1,
			 sizeof(*tree->chain)) < 0)
			return -ENOMEM;
		tree->chain[count++] = node;
	}
	return count;
}

static int indent_of(const struct output *out, size_t depth)
{
	size_t most = INDENT_MAX, step = INDENT;

	if (out->columns && out->columns < WIDE_COLUMNS) {
		step = 1;
		most = out->columns / INDENT_SHARE;
	}
	return (int)(depth * step < most ? depth * step : most);
}

/* Writes a line. Returns its last node, or PATH_FAILED. */
static uint32_t put_line(struct output *out, struct tree *tree, uint32_t node, size_t depth)
{
	char value[TIME_BYTES], share[SHARE_BYTES];
	int count = join(tree, node);

	if (count < 0)
		return PATH_FAILED;
	format_weight(value, tree->weight, tree->totals[node]);
	format_share(share, 100.0 * (double)tree->totals[node] / (double)tree->whole);
	put_figures(out, tree_columns, TREE_COLUMNS, (const char *const[]){value, share});
	if (tree->bar_columns)
		put_bar(out, tree->bar_columns, tree->totals[node], tree->whole);
	output_format(out, "%*s", (tree->bar_columns ? 2 : 0) + indent_of(out, depth), "");
	if (put_chain(out, tree->paths, tree->chain, (size_t)count, put_room(out)) < 0)
		return PATH_FAILED;
	output_text(out, "\n", 1);
	return tree->chain[count - 1];
}

/* Returns the next smaller child after last, or 0 at the end. */
static uint32_t next_child(struct tree *tree, uint32_t node, uint32_t last)
{
	uint32_t best = 0;

	for (uint32_t c = tree->first_child[node]; c; c = tree->sibling[c]) {
		bool is_behind = !last || tree->totals[c] < tree->totals[last] ||
				 (tree->totals[c] == tree->totals[last] && c > last);

		if (is_behind && tree->totals[c] && (!best || tree->totals[c] > tree->totals[best]))
			best = c;
	}
	return best;
}

static int put_children(struct output *out, struct tree *tree, uint32_t node, size_t depth)
{
	uint32_t last = 0, child;

	while ((child = next_child(tree, node, last))) {
		int error;

		last = child;
		if (tree->totals[child] < tree->least)
			return 0;
		child = put_line(out, tree, child, depth);
		error = child == PATH_FAILED ? -ENOMEM : put_children(out, tree, child, depth + 1);
		if (error)
			return error;
	}
	return 0;
}

static void put_tree_head(struct output *out, const struct tree *tree)
{
	static const char *const titles[WEIGHTS] = {
		[WEIGHT_GPU_TIME] = "GPU time",
		[WEIGHT_COUNT] = "Kernels, copies and memsets",
		[WEIGHT_CPU_WAIT] = "CPU time waiting for the GPU",
		[WEIGHT_GPU_EXCLUSIVE] = "GPU busy time",
		[WEIGHT_GPU_IDLE] = "GPU idle time",
		[WEIGHT_ALLOC_BYTES] = "Memory allocated",
		[WEIGHT_PEAK_BYTES] = "Peak memory",
		[WEIGHT_LEAKED_BYTES] = "Memory never freed",
	};
	char title[TITLE_BYTES], more[TITLE_BYTES];

	snprintf(title, sizeof(title), "%s by frame, including callees", titles[tree->weight]);
	snprintf(more, sizeof(more), "(at least %.1f %%)",
		 100.0 * (double)tree->least / (double)tree->whole);
	put_title(out, title, more);
	snprintf(more, sizeof(more), "%*scall tree", tree->bar_columns ? tree->bar_columns + 2 : 0,
		 "");
	put_heads(out, weight_specs[tree->weight].is_time ? tree_columns : sum_columns,
		  TREE_COLUMNS, more);
}

static int bar_columns(const struct output *out)
{
	if (!out->columns || out->columns >= WIDE_COLUMNS)
		return BAR_COLUMNS;
	return out->columns >= NARROW_COLUMNS ? BAR_NARROW : 0;
}

int summary_put_tree(struct sink *sink, const struct run *run)
{
	struct output *out = &sink->out;
	struct tree tree = {
		.paths = &run->paths,
		.weight = sink->settings->weight,
		.bar_columns = bar_columns(out),
	};
	int error = make_tree(&tree, &run->paths,
			      ROWS_PER_TOP * rows_to_show(SIZE_MAX, sink->settings));

	if (!error && tree.whole) {
		put_tree_head(out, &tree);
		error = put_children(out, &tree, PATH_ROOT, 0);
	}
	free(tree.totals);
	free(tree.first_child);
	free(tree.sibling);
	free(tree.chain);
	return error;
}
