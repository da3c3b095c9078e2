/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a flame graph of one weight as an SVG file, through page/svg_flame.h.
 *
 * Parents precede their children in the tree. One backward pass adds up the subtrees. A pass over
 * the nodes by parent and name then places each frame beside its siblings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "base/text.h"
#include "merge/export/formats.h"
#include "merge/export/summary/summary_text.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/run.h"
#include "page/svg_flame.h"

#define MIN_PARTS   20000 /* omit frames narrower than 1/MIN_PARTS of the image */
#define VALUE_BYTES (TIME_BYTES + COUNT_BYTES + 16)

/* A frame of the flame graph: all paths through it, merged. */
struct flame_frame {
	uint32_t node;	/* in paths; PATH_ROOT: all */
	uint32_t depth; /* 0: the root frame */
	uint64_t start; /* offset from the left, in units of the weight */
	uint64_t value; /* including descendants */
};

struct flame {
	struct flame_frame *frames; /* callers before callees, siblings by name */
	size_t count;
	uint32_t depth; /* of the deepest frame kept */
};

static int compare_siblings(const void *a, const void *b, void *context)
{
	const struct paths *paths = context;
	const struct path_node *x = &paths->nodes[*(const uint32_t *)a];
	const struct path_node *y = &paths->nodes[*(const uint32_t *)b];
	size_t x_length, y_length;
	const char *x_name, *y_name;
	int difference;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	x_name = names_text(&paths->names, x->name, &x_length);
	y_name = names_text(&paths->names, y->name, &y_length);
	difference = memcmp(x_name, y_name, x_length < y_length ? x_length : y_length);
	if (difference)
		return difference;
	return x_length < y_length ? -1 : x_length > y_length;
}

struct layout {
	uint64_t *values; /* by node, including descendants */
	uint64_t *next;	  /* start of the next child */
	uint32_t *depths; /* 0: omitted */
	uint32_t *sorted;
};

/* Adds with saturation. Only corrupt logs overflow. */
static uint64_t svg_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint32_t add_up(struct layout *layout, const struct paths *paths, enum weight weight)
{
	uint32_t count = 0;

	for (uint32_t n = paths->node_count; n-- > 0;) {
		layout->values[n] = svg_add(layout->values[n], paths->nodes[n].weights[weight]);
		if (n)
			layout->values[paths->nodes[n].parent] =
				svg_add(layout->values[paths->nodes[n].parent], layout->values[n]);
		if (n && layout->values[n])
			layout->sorted[count++] = n;
	}
	return count;
}

/* Lays out the paths by a weight. Omits frames that are too narrow, with their descendants. */
static void flame_build(struct flame *flame, const struct paths *paths, enum weight weight)
{
	struct layout layout = {
		.values = xt_calloc(paths->node_count, sizeof(*layout.values)),
		.next = xt_calloc(paths->node_count, sizeof(*layout.next)),
		.depths = xt_calloc(paths->node_count, sizeof(*layout.depths)),
		.sorted = xt_calloc(paths->node_count, sizeof(*layout.sorted)),
	};
	uint32_t count;

	count = add_up(&layout, paths, weight);
	*flame = (struct flame){.frames = xt_calloc((size_t)count + 1, sizeof(*flame->frames))};
	SORT_BY(layout.sorted, count, compare_siblings, (void *)paths);
	flame->frames[flame->count++] = (struct flame_frame){.value = layout.values[PATH_ROOT]};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = layout.sorted[i], parent = paths->nodes[n].parent;
		uint64_t start = layout.next[parent], value = layout.values[n];

		layout.next[parent] += value;
		if ((parent != PATH_ROOT && !layout.depths[parent]) ||
		    value < layout.values[PATH_ROOT] / MIN_PARTS)
			continue;
		layout.next[n] = start;
		layout.depths[n] = layout.depths[parent] + 1;
		flame->frames[flame->count++] =
			(struct flame_frame){n, layout.depths[n], start, value};
		flame->depth = larger(flame->depth, layout.depths[n]);
	}
	free_all(layout.values, layout.next, layout.depths, layout.sorted);
}

/* Returns the CSS class of a frame, which sets its colour. */
static const char *class_of(const char *name, uint32_t depth)
{
	static const struct {
		const char *start;
		const char *class;
	} rows[] = {
		{LEAF_KERNEL_MARK, "work"}, {"[GPU_Mem", "work"}, {"[Memory ", "work"},
		{"[NVTX ", "range"},	    {"[idle: ", "idle"},  {"cuda", "api"},
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		if (begins_with(name, rows[r].start))
			return rows[r].class;
	if (name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z')
		return "api";
	return depth % 2 ? "function" : "function odd";
}

static void format_value(char *out, enum weight weight, uint64_t value)
{
	char exact[COUNT_BYTES];

	format_weight(out, weight, value, false);
	if (!strcmp(weight_unit(weight), "count"))
		return;
	format_count(exact, value);
	snprintf(out + strlen(out), VALUE_BYTES - strlen(out), " (%s %s)", exact,
		 weight_unit(weight));
}

static void put_frame(const struct svg_flame *svg, const struct flame *flame,
		      const struct flame_frame *frame, const struct paths *paths,
		      enum weight weight)
{
	double whole = flame->frames[0].value ? (double)flame->frames[0].value : 1.0;
	struct svg_frame shown = {
		.depth = frame->depth,
		.start = (double)frame->start / whole,
		.width = (double)frame->value / whole,
		.value = frame->value,
		.name = "all",
		.name_length = strlen("all"),
	};
	char numbers[VALUE_BYTES + 32];

	if (frame->depth)
		shown.name = names_text(&paths->names, paths->nodes[frame->node].name,
					&shown.name_length);
	format_value(numbers, weight, frame->value);
	snprintf(numbers + strlen(numbers), sizeof(numbers) - strlen(numbers), "\n%.2f %%",
		 100.0 * shown.width);
	shown.numbers = numbers;
	shown.class = class_of(shown.name, frame->depth);
	if (begins_with(shown.name, LEAF_KERNEL_MARK))
		shown.mark_length = strlen(LEAF_KERNEL_MARK);
	svg_flame_frame(svg, &shown);
}

static const char *const headings[WEIGHTS] = {
	[WEIGHT_GPU_TIME] = "GPU time by call path",
	[WEIGHT_COUNT] = "Kernels, copies and memsets by call path",
	[WEIGHT_CPU_WAIT] = "CPU time waiting for the GPU by call path",
	[WEIGHT_GPU_EXCLUSIVE] = "GPU busy time by call path",
	[WEIGHT_GPU_IDLE] = "GPU idle time by the work that ended it",
	[WEIGHT_ALLOC_BYTES] = "Memory allocated by call path",
	[WEIGHT_PEAK_BYTES] = "Peak memory by call path",
	[WEIGHT_LEAKED_BYTES] = "Memory never freed by call path",
	[WEIGHT_CPU_TIME] = "CPU time of threads by call path",
	[WEIGHT_OFF_CPU] = "Waiting time of threads by call path",
	[WEIGHT_COLLECTIVE_WAIT] = "Waits of ranks in collectives by call path",
	[WEIGHT_COLLECTIVE_CAUSE] = "Time that call paths make other ranks wait",
	[WEIGHT_UNTIMED] = "Launches of kernels in CUDA graphs recorded as a whole",
};

static void svg_end(struct sink *sink, const struct run *run)
{
	enum weight weight = sink->settings->weight;
	struct svg_flame svg = {.out = &sink->out};
	struct flame flame;
	char heading[128], note[VALUE_BYTES + WANTED_BYTES + 160];

	flame_build(&flame, &run->paths, weight);
	svg.depth = flame.depth;
	snprintf(heading, sizeof(heading), "%s%s%s", headings[weight],
		 run_is_part(run) ? ", part of the run" : "",
		 run->sums->recording.has_simulated_gpu ? " [simulated]" : "");
	format_value(note, weight, flame.frames[0].value);
	if (run->selection) {
		strcat(note, run_is_part(run) ? "; only " : "; ");
		wanted_describe(&run->settings->wanted, note + strlen(note), WANTED_BYTES);
	}
	if (run->report->status != STATUS_OK)
		strcat(note, "; data is missing, see the warnings in the summary");
	svg_flame_begin(&svg, heading, note);
	for (size_t f = 0; f < flame.count; f++)
		put_frame(&svg, &flame, &flame.frames[f], &run->paths, weight);
	svg_flame_end(&svg);
	free(flame.frames);
}

const struct exporter exporter_svg = {
	.name = "svg",
	.what = "Write a searchable flame graph of one weight",
	.uses = USES_PATHS | USES_WEIGHT,
	.end = svg_end,
};
