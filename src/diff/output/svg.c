/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A differential flame graph as SVG. Widths are the GPU time of new, colours show the change.
 * Vanished paths have no width; the HTML page can also show the widths of base.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/output/diff_output.h"
#include "diff/output/flame_tree.h"
#include "diff/compare/row_text.h"
#include "diff/base/format.h"
#include "page/svg_flame.h"

#define MIN_PARTS	 20000.0 /* narrowest frame, as 1 / part of the width */
#define LABEL_CHANGE_MIN 0.01	 /* smallest change in a label */
#define NUMBERS_BYTES	 256

static void write_piece(void *context, const char *text, size_t length)
{
	fwrite(text, 1, length, context);
}

static double value_of(const struct flame_node *node, enum side side)
{
	return node->total[FLAME_GPU_TIME][side];
}

static double ratio_of(double base, double new)
{
	return base > 0 ? new / base - 1 : new > 0 ? INFINITY : 0;
}

static void put_frame(const struct svg_flame *svg, const struct flame_node *node, double start,
		      double whole)
{
	double base = value_of(node, SIDE_BASE), new = value_of(node, SIDE_NEW);
	char base_text[AMOUNT_BYTES], new_text[AMOUNT_BYTES], change[AMOUNT_BYTES];
	char ratio[AMOUNT_BYTES], numbers[NUMBERS_BYTES], colour[FLAME_COLOUR_BYTES];
	char label[AMOUNT_BYTES + 1];
	struct svg_frame frame = {
		.depth = node->depth,
		.start = start / whole,
		.width = new / whole,
		.value = (uint64_t) new,
		.name = node->name,
		.name_length = strlen(node->name),
		.mark_length = (size_t)(frame_name(node->name) - node->name),
		.numbers = numbers,
		.class = "change",
		.fill = colour,
	};

	flame_colour(colour, base, new);
	format_ratio(ratio, ratio_of(base, new));
	snprintf(numbers, sizeof(numbers), "base %s, new %s\nchange %s%s, %s\n%.2f %% of new",
		 format_amount(base_text, UNIT_NS, base), format_amount(new_text, UNIT_NS, new),
		 new > base ? "+" : "", format_amount(change, UNIT_NS, new - base), ratio,
		 100 * frame.width);
	snprintf(label, sizeof(label), " %s", ratio);
	if (fabs(ratio_of(base, new)) >= LABEL_CHANGE_MIN)
		frame.label = label;
	svg_flame_frame(svg, &frame);
}

/* A node starts where its previous sibling ends, or where its parent starts. */
static int put_frames(struct svg_flame *svg, const struct flame_tree *tree, double whole)
{
	double *next = calloc((size_t)tree->count + 1,
			      sizeof(*next)); /* by node: start of its next child */

	if (!next)
		return -ENOMEM;
	for (uint32_t n = 0; n < tree->count; n++) {
		const struct flame_node *node = &tree->nodes[n];
		double start = n ? next[node->parent] : 0;

		next[n] = start;
		if (n)
			next[node->parent] += value_of(node, SIDE_NEW);
		if (value_of(node, SIDE_NEW) >= whole / MIN_PARTS)
			put_frame(svg, node, start, whole);
	}
	free(next);
	return 0;
}

static void make_legend(const char *legend[][2], char colours[][FLAME_COLOUR_BYTES])
{
	static const struct {
		double base, new;
		const char *word;
	} steps[] = {{100, 75, "-25 %"}, {100, 90, "-10 %"}, {100, 97, "-3 %"}, {100, 100, "same"},
		     {97, 100, "+3 %"},	 {90, 100, "+11 %"}, {75, 100, "+33 %"}};
	size_t s;

	for (s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		flame_colour(colours[s], steps[s].base, steps[s].new);
		legend[s][0] = colours[s];
		legend[s][1] = steps[s].word;
	}
	legend[s][0] = NULL;
}

static int write_svg(FILE *out, const struct diff_result *result)
{
	struct svg_flame svg = {.write = write_piece, .context = out};
	char base[AMOUNT_BYTES], new[AMOUNT_BYTES], ratio[AMOUNT_BYTES], note[NUMBERS_BYTES];
	char colours[8][FLAME_COLOUR_BYTES];
	const char *legend[8][2];
	struct flame_tree tree;
	double whole, before;
	int error;

	if (!result->comparison)
		return -ENODATA;
	error = flame_tree_make(&tree, result->comparison);
	if (error)
		goto out;
	before = value_of(&tree.nodes[0], SIDE_BASE);
	whole = value_of(&tree.nodes[0], SIDE_NEW);
	for (uint32_t n = 0; n < tree.count; n++)
		if (tree.nodes[n].depth > svg.depth &&
		    value_of(&tree.nodes[n], SIDE_NEW) >= whole / MIN_PARTS)
			svg.depth = tree.nodes[n].depth;
	snprintf(note, sizeof(note), "base %s, new %s%s: %s", format_amount(base, UNIT_NS, before),
		 format_amount(new, UNIT_NS, whole),
		 result->comparison->has_iterations ? " per iteration" : "",
		 format_ratio(ratio, ratio_of(before, whole)));
	make_legend(legend, colours);
	svg_flame_begin(&svg, "GPU time by call path: changes", note,
			(const char *const(*)[2])legend);
	error = put_frames(&svg, &tree, whole > 0 ? whole : 1);
	svg_flame_end(&svg);
out:
	flame_tree_free(&tree);
	return error;
}

const struct diff_output diff_output_svg = {
	.name = "svg",
	.what = "Write a searchable differential flame graph, from blue to red",
	.value = "FILE",
	.write = write_svg,
};
