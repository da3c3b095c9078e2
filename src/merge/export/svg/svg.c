/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a flame graph of one weight as an SVG file, through page/svg_flame.h.
 */
#include "merge/export/svg/svg_flame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "merge/base/text.h"
#include "merge/export/summary/summary_text.h"
#include "page/svg_flame.h"

#define MIN_PARTS   20000 /* omit frames narrower than 1/MIN_PARTS of the image */
#define VALUE_BYTES (TIME_BYTES + COUNT_BYTES + 16)

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

	if (weight_specs[weight].is_time)
		format_time(out, value);
	else if (weight == WEIGHT_COUNT)
		format_count(out, value);
	else
		format_bytes(out, value);
	if (weight == WEIGHT_COUNT)
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

static void write_piece(void *context, const char *text, size_t length)
{
	output_text(context, text, length);
}

static void end(struct sink *sink, const struct run *run)
{
	enum weight weight = sink->settings->weight;
	struct svg_flame svg = {.write = write_piece, .context = &sink->out};
	struct flame flame;
	char heading[128], note[VALUE_BYTES + WANTED_BYTES + 160];

	flame_build(&flame, &run->paths, weight, MIN_PARTS);
	svg.depth = flame.depth;
	snprintf(heading, sizeof(heading), "%s%s%s", headings[weight],
		 run->selection ? ", part of the run" : "",
		 run->sums->recording.has_simulated_gpu ? " [simulated]" : "");
	format_value(note, weight, flame.frames[0].value);
	if (run->selection) {
		strcat(note, "; only ");
		wanted_describe(&run->settings->wanted, note + strlen(note), WANTED_BYTES);
	}
	if (run->report->status != STATUS_OK)
		strcat(note, "; data is missing, see the warnings in the summary");
	svg_flame_begin(&svg, heading, note);
	for (size_t f = 0; f < flame.count; f++)
		put_frame(&svg, &flame, &flame.frames[f], &run->paths, weight);
	svg_flame_end(&svg);
	flame_free(&flame);
}

const struct exporter exporter_svg = {
	.name = "svg",
	.what = "Write a searchable flame graph of one weight",
	.uses = USES_PATHS | USES_WEIGHT,
	.end = end,
};
