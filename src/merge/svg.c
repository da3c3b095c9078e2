/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as one SVG file, that needs nothing else: the width of a frame is what it weighs with
 * all that it calls. Each frame says its numbers in its title, so it can be read where scripts are
 * off, as in an image of a page; where they are on, frames can be zoomed into and searched for.
 */
#include "merge/svg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/summary.h"
#include "merge/text.h"

#define WIDTH	     1200.0
#define MARGIN	     10.0
#define HEAD	     58.0 /* above the frames */
#define ROW	     17.0
#define COLUMN	     7.3   /* of a letter */
#define COLUMNS_MIN  3	   /* a label that is shorter says nothing */
#define MIN_PARTS    20000 /* frames are left out that are narrower than a part of so many */
#define VALUE_BYTES  (TIME_BYTES + COUNT_BYTES + 16)
#define PLACES_WIDTH (WIDTH - 2 * MARGIN)

/* What a text becomes in XML. Names have no control characters. */
static void put_escaped(struct output *out, const char *text, size_t length)
{
	static const struct {
		char c;
		const char *escape;
	} escapes[] = {
		{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

	for (size_t i = 0; i < length; i++) {
		const char *escape = NULL;

		for (size_t e = 0; e < sizeof(escapes) / sizeof(escapes[0]); e++)
			if (text[i] == escapes[e].c)
				escape = escapes[e].escape;
		if (escape)
			output_text(out, escape, strlen(escape));
		else
			output_text(out, &text[i], 1);
	}
}

/* As much of a name as there is room for in a frame of that width. */
static void put_label(struct output *out, const char *name, size_t length, double width)
{
	size_t columns = width > 4 ? (size_t)((width - 4) / COLUMN) : 0, seen = 0, i = 0;
	bool is_whole = text_columns(name, length) <= columns;

	if (columns < COLUMNS_MIN)
		return;
	if (is_whole) {
		put_escaped(out, name, length);
		return;
	}
	while (i < length && seen < columns - 1) {
		i++;
		while (i < length && ((uint8_t)name[i] & 0xc0) == 0x80)
			i++;
		seen++;
	}
	put_escaped(out, name, i);
	output_format(out, "\xe2\x80\xa6");
}

static bool begins_with(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

/* The class of a frame, which gives it its colour. */
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

static void put_frame(struct output *out, const struct flame *flame,
		      const struct flame_frame *frame, const struct paths *paths,
		      enum weight weight)
{
	double whole = flame->frames[0].value ? (double)flame->frames[0].value : 1.0;
	double x = MARGIN + (double)frame->start / whole * PLACES_WIDTH;
	double width = (double)frame->value / whole * PLACES_WIDTH;
	double y = HEAD + (double)(flame->depth - frame->depth) * ROW;
	size_t length = strlen("all");
	const char *name =
		frame->depth ? names_text(&paths->names, paths->nodes[frame->node].name, &length)
			     : "all";
	char value[VALUE_BYTES];

	format_value(value, weight, frame->value);
	output_format(out, "<g class=\"frame %s\" data-depth=\"%u\" data-value=\"%llu\"><title>",
		      class_of(name, frame->depth), frame->depth, (unsigned long long)frame->value);
	put_escaped(out, name, length);
	output_format(out,
		      "\n%s\n%.2f %%</title><rect x=\"%.3f\" y=\"%.0f\" width=\"%.3f\" "
		      "height=\"%.0f\"/><text x=\"%.3f\" y=\"%.0f\">",
		      value, 100.0 * (double)frame->value / whole, x, y, width, ROW - 1, x + 3,
		      y + ROW - 5);
	if (begins_with(name, LEAF_KERNEL_MARK)) {
		name += strlen(LEAF_KERNEL_MARK);
		length -= strlen(LEAF_KERNEL_MARK);
	}
	put_label(out, name, length, width);
	output_format(out, "</text></g>\n");
}

static const char *const headings[WEIGHTS] = {
	[WEIGHT_GPU_TIME] = "GPU time by call path",
	[WEIGHT_COUNT] = "Kernels, copies and sets by call path",
	[WEIGHT_CPU_WAIT] = "Time in which the CPU waited for the GPU",
	[WEIGHT_GPU_EXCLUSIVE] = "Exclusive GPU time by call path",
	[WEIGHT_GPU_IDLE] = "GPU idle time, by what ended it",
	[WEIGHT_ALLOC_BYTES] = "Bytes allocated by call path",
	[WEIGHT_PEAK_BYTES] = "Bytes held at the peak by call path",
	[WEIGHT_LEAKED_BYTES] = "Bytes never freed by call path",
};

static void put_head(struct output *out, const struct flame *flame, const struct run *run,
		     enum weight weight)
{
	double height = HEAD + (double)(flame->depth + 1) * ROW + MARGIN;
	char value[VALUE_BYTES];
	size_t length;
	const char *style = svg_style(&length);

	format_value(value, weight, flame->frames[0].value);
	output_format(out,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		      "viewBox=\"0 0 %.0f %.0f\">\n<title>%s</title>\n<style>\n",
		      WIDTH, height, WIDTH, height, headings[weight]);
	output_text(out, style, length);
	output_format(out,
		      "</style>\n<text class=\"heading\" x=\"%.0f\" y=\"24\">%s%s</text>\n"
		      "<text class=\"button\" id=\"reset\" x=\"%.0f\" y=\"24\" "
		      "style=\"display:none\">whole</text>\n"
		      "<text class=\"button\" id=\"search\" x=\"%.0f\" y=\"24\" "
		      "style=\"display:none\">search</text>\n"
		      "<text class=\"note\" id=\"details\" x=\"%.0f\" y=\"46\">%s%s</text>\n",
		      MARGIN, headings[weight], run->has_simulated_gpu ? " [simulated]" : "",
		      WIDTH - MARGIN - 120, WIDTH - MARGIN - 52, MARGIN, value,
		      run->report->status == STATUS_OK ? ""
						       : "; something is missing: see the warnings "
							 "of the summary");
}

static int end(struct sink *sink, const struct run *run)
{
	enum weight weight = sink->settings->weight;
	struct output *out = &sink->out;
	struct flame flame;
	size_t length;
	const char *script = svg_script(&length);
	int error = flame_build(&flame, &run->paths, weight, MIN_PARTS);

	if (error)
		return error;
	put_head(out, &flame, run, weight);
	for (size_t f = 0; f < flame.count; f++)
		put_frame(out, &flame, &flame.frames[f], &run->paths, weight);
	output_format(out, "<script><![CDATA[\n");
	output_text(out, script, length);
	output_format(out, "]]></script>\n</svg>\n");
	flame_free(&flame);
	return 0;
}

const struct exporter exporter_svg = {
	.name = "svg",
	.what = "a flame graph of one weight as an image that can be searched",
	.uses = USES_PATHS | USES_WEIGHT,
	.end = end,
};
