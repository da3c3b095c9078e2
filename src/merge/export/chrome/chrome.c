/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Chrome's trace event format, as a JSON object.
 *
 * Each traced process is a process of the trace, with a track per thread for CUDA calls and NVTX
 * ranges. Each of its devices is another process, with a track per context and stream. A flow arrow
 * connects each launch with each of its kernels.
 *
 * A trace has millions of events, so text that many events share is formatted once and cached.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/export/chrome/chrome_events.h"
#include "merge/export/chrome/chrome_text.h"

static int begin(struct sink *sink)
{
	struct chrome *c = tracks_begin(sink, &chrome_writer, sizeof(*c));

	chrome_make_pieces(c);
	output_format(&sink->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	return 0;
}

/* Writes the frames that events refer to, each with its parent. */
static void put_stack_frames(struct sink *sink, const struct paths *paths)
{
	struct chrome *c = sink->state;
	const char *separator = "";

	xt_grow(&c->used_nodes, &c->used_capacity, paths->node_count, sizeof(bool));
	/* A parent precedes its children, so one backward pass marks all ancestors. */
	for (uint32_t n = paths->node_count; n-- > 1;)
		if (c->used_nodes[n])
			c->used_nodes[paths->nodes[n].parent] = true;
	for (uint32_t n = 1; n < paths->node_count; n++) {
		const struct path_node *node = &paths->nodes[n];
		struct text json;
		const char *name;
		size_t length;

		if (!c->used_nodes[n])
			continue;
		name = names_text(&paths->names, node->name, &length);
		json = chrome_json(name, length);
		output_format(&sink->out, "%s\n\"%u\":{\"name\":\"%s\"", separator, n, json.data);
		if (node->parent != PATH_ROOT)
			output_format(&sink->out, ",\"parent\":\"%u\"", node->parent);
		output_text(&sink->out, "}", 1);
		separator = ",";
		free(json.data);
	}
}

/* Writes the options that selected a part of the run. */
static void put_selection(struct sink *sink, const struct run *run)
{
	char part[WANTED_BYTES];
	struct text text;

	wanted_describe(&run->settings->wanted, part, sizeof(part));
	text = chrome_json(part, strlen(part));
	output_format(&sink->out, ",\"otherData\":{\"selection\":\"%s\"}", text.data);
	free(text.data);
}

static int end(struct sink *sink, const struct run *run)
{
	output_format(&sink->out, "\n],\"stackFrames\":{");
	put_stack_frames(sink, &run->paths);
	output_format(&sink->out, "\n}");
	if (run->selection)
		put_selection(sink, run);
	output_format(&sink->out, "}\n");
	return 0;
}

static void free_state(struct sink *sink)
{
	struct chrome *c = sink->state;

	for (size_t i = 0; c && i < c->name_capacity; i++)
		free(c->names[i].data);
	if (c) {
		free(c->names);
		free(c->used_nodes);
		free(c->buffer.data);
	}
	tracks_free(sink);
}

const struct exporter exporter_chrome = {
	.name = "chrome",
	.what = "Write Chrome trace events (JSON) for Perfetto and chrome://tracing",
	.uses = USES_TIMELINE | USES_CPU_LOGS,
	TRACKS_EVENTS,
	.begin = begin,
	.end = end,
	.free = free_state,
};
