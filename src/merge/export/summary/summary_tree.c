/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree: a flame graph for the terminal. Small frames are omitted. If nearly all of a frame
 * belongs to one child, both share a line with the value of the first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/text.h"
#include "log/base/compare.h"
#include "merge/export/summary/summary_text.h"
#include "merge/export/summary/summary_tree.h"
#include "merge/sums/exporter.h"
#include "merge/sums/run.h"

#define TITLE_BYTES	96
#define ROWS_PER_TOP	3   /* per row of the other tables */
#define SHARE_MIN	100 /* omit less than 1/100 of the total */
#define JOIN_SHARE	10  /* "nearly all" is all but 1/10 */
#define BAR_COLUMNS	16
#define BAR_NARROW	8 /* below WIDE_COLUMNS; no bar below NARROW_COLUMNS */
#define WIDE_COLUMNS	100
#define NARROW_COLUMNS	60
#define TREE_INDENT	2
#define INDENT_MAX	40
#define PATHS_BYTES	24
#define ROW_COLUMNS_MIN 8 /* beside the number of paths */
#define INDENT_SHARE	6 /* indent at most 1/6 of the line */

static const struct column time_columns[] = {{"time", 12, 0, false}, {"share", 7, 0, false}};
static const struct column sum_columns[] = {{"sum", 12, 0, false}, {"share", 7, 0, false}};

#define TREE_COLUMNS (sizeof(time_columns) / sizeof(time_columns[0]))

struct tree {
	const struct paths *paths;
	uint64_t *totals; /* by node, including descendants */
	uint32_t *first_child;
	uint32_t *sibling;
	uint64_t least; /* threshold: smaller nodes have no line */
	enum weight weight;
	uint64_t whole;
	int bar_columns;
	bool is_short;	 /* numbers in three digits */
	uint32_t *chain; /* nodes that share the current line */
	size_t chain_capacity;
	struct output line; /* in memory: the line being composed */
};

/* A line of the tree, or several equal ones without lines below them. */
struct row {
	uint32_t first;
	uint32_t last; /* the last node that shares the line */
	uint32_t path_count;
	uint64_t total;
	char *text; /* owned */
};

struct rows {
	LIST(struct row);
};

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

/* Chooses the threshold that limits the number of lines. */
static void choose_least(struct tree *tree, size_t row_count)
{
	uint64_t *values = xt_calloc(tree->paths->node_count, sizeof(*values));
	size_t count = 0;

	for (uint32_t n = 1; n < tree->paths->node_count; n++)
		if (has_line(tree, n))
			values[count++] = tree->totals[n];
	qsort(values, count, sizeof(*values), compare_u64);
	tree->least = tree->whole / SHARE_MIN;
	if (count > row_count && values[count - row_count] > tree->least)
		tree->least = values[count - row_count];
	free(values);
}

static void make_tree(struct tree *tree, const struct paths *paths, size_t row_count)
{
	tree->totals = xt_calloc(paths->node_count, sizeof(*tree->totals));
	tree->first_child = xt_calloc(paths->node_count, sizeof(*tree->first_child));
	tree->sibling = xt_calloc(paths->node_count, sizeof(*tree->sibling));
	/* Parents precede children, so a backward pass adds up complete subtrees. */
	for (uint32_t n = paths->node_count; n-- > 1;) {
		uint32_t parent = paths->nodes[n].parent;

		tree->totals[n] += paths->nodes[n].weights[tree->weight];
		tree->totals[parent] += tree->totals[n];
		tree->sibling[n] = tree->first_child[parent];
		tree->first_child[parent] = n;
	}
	tree->whole = tree->totals[PATH_ROOT];
	choose_least(tree, row_count);
}

static void put_bar(struct output *out, int columns, uint64_t part, uint64_t whole)
{
	double filled = (double)part / (double)whole * columns * 8;

	put_style(out, STYLE_BAR);
	for (int c = 0; c < columns; c++) {
		int rest = (int)(filled + 0.5) - c * 8;

		/* U+2588 is a full block. The next ones have an eighth less each. */
		if (rest > 0)
			output_format(out, "\xe2\x96%c", 0x90 - (rest > 8 ? 8 : rest));
		else
			output_char(out, ' ');
	}
	put_style(out, STYLE_PLAIN);
}

/* Collects the nodes that share a line with node. Returns their number. */
static size_t join(struct tree *tree, uint32_t node)
{
	size_t count = 0;

	for (; node; node = joined_child(tree, node)) {
		xt_grow(tree->chain, tree->chain_capacity, count + 1);
		tree->chain[count++] = node;
	}
	return count;
}

static int indent_of(const struct output *out, size_t depth)
{
	size_t most = INDENT_MAX, step = TREE_INDENT;

	if (out->columns && out->columns < WIDE_COLUMNS) {
		step = 1;
		most = out->columns / INDENT_SHARE;
	}
	return (int)(depth * step < most ? depth * step : most);
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

static void put_figures_of(struct output *out, const struct tree *tree, const struct row *row,
			   size_t depth)
{
	char value[TIME_BYTES], share[SHARE_BYTES];
	uint64_t total = row->total;

	format_weight(value, tree->weight, total, tree->is_short);
	format_share(share, total, tree->whole);
	put_figures(out, time_columns, TREE_COLUMNS, (const char *const[]){value, share});
	if (tree->bar_columns)
		put_bar(out, tree->bar_columns, total, tree->whole);
	output_format(out, "%*s", (tree->bar_columns ? 2 : 0) + indent_of(out, depth), "");
}

/* Composes the line of row->first, with room for more columns. */
static void make_text(struct tree *tree, size_t depth, size_t more_columns, struct row *row)
{
	struct output *line = &tree->line;
	size_t count = join(tree, row->first), start, room;

	line->used = 0;
	put_figures_of(line, tree, row, depth);
	start = line->used;
	room = put_room(line);
	room = room > more_columns + ROW_COLUMNS_MIN ? room - more_columns : ROW_COLUMNS_MIN;
	put_chain(line, tree->paths, tree->chain, count, room);
	row->last = tree->chain[count - 1];
	free(row->text);
	row->text = xt_strndup(line->buffer + start, line->used - start);
}

static bool has_lines_below(struct tree *tree, uint32_t node)
{
	uint32_t child = next_child(tree, node, 0);

	return child && tree->totals[child] >= tree->least;
}

/* Adds the row, or adds it to one that reads the same. Takes the text. */
static void add_row(struct tree *tree, struct rows *rows, struct row *row)
{
	size_t r = 0;

	while (r < rows->count && (strcmp(rows->list[r].text, row->text) != 0 ||
				   has_lines_below(tree, rows->list[r].last)))
		r++;
	if (r < rows->count && !has_lines_below(tree, row->last)) {
		rows->list[r].path_count++;
		rows->list[r].total += row->total;
		free(row->text);
		return;
	}
	xt_grow(rows->list, rows->capacity, rows->count + 1);
	rows->list[rows->count++] = *row;
}

COMPARE_BY(compare_rows, struct row, DOWN(total) UP(last))

static void put_children(struct output *out, struct tree *tree, uint32_t node, size_t depth)
{
	struct rows rows = {0};
	uint32_t child = 0;

	while ((child = next_child(tree, node, child)) && tree->totals[child] >= tree->least) {
		struct row row = {.first = child, .path_count = 1, .total = tree->totals[child]};

		make_text(tree, depth, 0, &row);
		add_row(tree, &rows, &row);
	}
	SORT(rows.list, rows.count, compare_rows);
	for (size_t r = 0; r < rows.count; r++) {
		struct row *row = &rows.list[r];
		char count[PATHS_BYTES] = "";

		if (row->path_count > 1) {
			snprintf(count, sizeof(count), tree->bar_columns ? " (%u paths)" : " (%u)",
				 row->path_count);
			make_text(tree, depth, strlen(count), row);
		}
		put_figures_of(out, tree, row, depth);
		output_format(out, "%s%s\n", row->text, count);
		put_children(out, tree, row->last, depth + 1);
	}
	for (size_t r = 0; r < rows.count; r++)
		free(rows.list[r].text);
	free(rows.list);
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
		[WEIGHT_CPU_TIME] = "CPU time of threads",
		[WEIGHT_OFF_CPU] = "Waiting time of threads",
		[WEIGHT_COLLECTIVE_WAIT] = "Waits of ranks in collectives",
		[WEIGHT_COLLECTIVE_CAUSE] = "Time that other ranks are made to wait",
		[WEIGHT_UNTIMED] = "Launches of kernels in CUDA graphs recorded as a whole",
	};
	char title[TITLE_BYTES], more[TITLE_BYTES];

	snprintf(title, sizeof(title), "%s by frame, including callees", titles[tree->weight]);
	snprintf(more, sizeof(more), "(at least %.1f %%)",
		 100.0 * (double)tree->least / (double)tree->whole);
	put_title(out, title, more);
	snprintf(more, sizeof(more), "%*scall tree", tree->bar_columns ? tree->bar_columns + 2 : 0,
		 "");
	put_heads(out, weight_specs[tree->weight].is_time ? time_columns : sum_columns,
		  TREE_COLUMNS, more);
}

static int bar_columns(const struct output *out)
{
	if (!out->columns || out->columns >= WIDE_COLUMNS)
		return BAR_COLUMNS;
	return out->columns >= NARROW_COLUMNS ? BAR_NARROW : 0;
}

void put_call_tree(struct sink *sink, const struct run *run)
{
	struct output *out = &sink->out;
	struct tree tree = {
		.paths = &run->paths,
		.weight = sink->settings->weight,
		.is_short = !sink->settings->tables.has_all,
		.bar_columns = bar_columns(out),
	};

	tree.line = (struct output){.columns = out->columns,
				    .has_colours = out->has_colours,
				    .buffer = xt_malloc(OUTPUT_BUFFER_BYTES),
				    .fd = -1};
	make_tree(&tree, &run->paths, ROWS_PER_TOP * rows_to_show(SIZE_MAX, sink->settings));
	if (tree.whole) {
		put_tree_head(out, &tree);
		put_children(out, &tree, PATH_ROOT, 0);
	}
	free_all(tree.totals, tree.first_child, tree.sibling, tree.chain, tree.line.buffer);
}
