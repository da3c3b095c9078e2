/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Chrome's trace event format, for Perfetto and chrome://tracing, as a stream.
 *
 * Each log becomes one process with a track per thread, which holds the API calls, and another one
 * for samples of the thread. Each of its devices becomes another process, with a track per context
 * and stream, which holds the GPU work. A flow arrow connects each launch with each of its kernels.
 * Viewers require the spans of a track to nest, so kernels that overlap in one stream go to
 * additional lanes of that stream.
 *
 * A trace has millions of events, so text that many events share is formatted once and cached.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "merge/naming/joined_paths.h"
#include "merge/export/chrome/chrome_state.h"

#include "merge/export/chrome/chrome_ranges.h"
#include "merge/export/chrome/chrome_samples.h"
#include "merge/export/chrome/chrome_text.h"
#include "merge/export/chrome/chrome_tracks.h"
#include "merge/export/chrome/chrome_work.h"

static int begin(struct sink *sink)
{
	struct chrome *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	sink->state = c;
	c->next_number = NUMBERS_FIRST;
	output_format(&sink->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	return 0;
}

/* Records the calling frame, for viewers that show stacks. Returns 0 or -ENOMEM. */
static int note_frame(struct chrome *c, const struct process *process, uint32_t stack,
		      uint32_t *node_out)
{
	*node_out = PATH_ROOT;
	if (!frames_has_stack(process->frames, stack))
		return 0;
	*node_out = joined_paths_node(process->frames, stack);
	return chrome_use_frame(c, *node_out);
}

static int put_call(struct sink *sink, const struct process *process, const struct launch *call,
		    uint64_t duration_ns, uint64_t result)
{
	struct chrome *c = sink->state;
	const struct text *name =
		chrome_name(c, process, frames_api_name(process->frames, call->stack, call->api));
	uint32_t track = chrome_thread_track(sink, process, call->thread);
	uint32_t node;
	char *p;

	if (!name || note_frame(c, process, call->stack, &node) < 0)
		return -ENOMEM;
	p = chrome_begin_event(c, output_room(&sink->out, EVENT_BYTES_MAX));
	p = TEXT_LITERAL(p, "{\"ph\":\"X\",\"cat\":\"api\",\"name\":\"");
	output_advance(&sink->out, p);
	output_text(&sink->out, name->data, name->length);
	p = output_room(&sink->out, EVENT_BYTES_MAX);
	*p++ = '"';
	p = chrome_put_track(c, p, c->pid, track);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, chrome_time(process, call->enter_ns));
	p = TEXT_LITERAL(p, ",\"dur\":");
	p = text_us(p, (int64_t)(duration_ns & INT64_MAX));
	if (node != PATH_ROOT) {
		p = TEXT_LITERAL(p, ",\"sf\":");
		p = text_u64(p, node);
	}
	p = TEXT_LITERAL(p, ",\"args\":{\"correlation\":");
	p = text_u64(p, call->correlation);
	if (result) {
		p = TEXT_LITERAL(p, ",\"error\":");
		p = text_u64(p, result);
	}
	p = TEXT_LITERAL(p, "}}");
	output_advance(&sink->out, p);
	return 0;
}

/* Writes a counter event: device memory on the device's process, host memory on the traced one. */
static int put_memory(struct sink *sink, const struct process *process, uint32_t pool,
		      uint64_t time_ns, uint64_t live_bytes)
{
	struct chrome *c = sink->state;
	uint32_t pid = pool == MEMORY_POOL_HOST ? c->pid : chrome_device_pid(sink, process, pool);
	char *p;

	if (!pid && pool != MEMORY_POOL_HOST)
		return -ENOMEM;
	p = chrome_begin_event(c, output_room(&sink->out, EVENT_BYTES_MAX));
	p = TEXT_LITERAL(p,
			 "{\"ph\":\"C\",\"cat\":\"memory\",\"name\":\"allocated memory\",\"pid\":");
	p = text_u64(p, pid);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, chrome_time(process, time_ns));
	p = TEXT_LITERAL(p, ",\"args\":{\"bytes\":");
	p = text_u64(p, live_bytes);
	p = TEXT_LITERAL(p, "}}");
	output_advance(&sink->out, p);
	return 0;
}

/* Writes the frames that calls refer to, each with its parent. */
static int put_stack_frames(struct sink *sink, const struct paths *paths)
{
	struct chrome *c = sink->state;
	const char *separator = "";
	int error = grow(&c->used_nodes, &c->used_capacity, paths->node_count, sizeof(bool));

	/* A parent precedes its children, so one backward pass marks all ancestors. */
	for (uint32_t n = paths->node_count; !error && n-- > 1;)
		if (c->used_nodes[n])
			c->used_nodes[paths->nodes[n].parent] = true;
	for (uint32_t n = 1; !error && n < paths->node_count; n++) {
		const struct path_node *node = &paths->nodes[n];
		struct text json;
		const char *name;
		size_t length;

		if (!c->used_nodes[n])
			continue;
		name = names_text(&paths->names, node->name, &length);
		error = chrome_json(&json, name, length);
		if (error)
			break;
		output_format(&sink->out, "%s\n\"%u\":{\"name\":\"%s\"", separator, n, json.data);
		if (node->parent != PATH_ROOT)
			output_format(&sink->out, ",\"parent\":\"%u\"", node->parent);
		output_text(&sink->out, "}", 1);
		separator = ",";
		free(json.data);
	}
	return error;
}

/* Writes the options that selected a part of the run. */
static int put_selection(struct sink *sink, const struct run *run)
{
	char part[WANTED_BYTES];
	struct text text;
	int error;

	wanted_describe(&run->settings->wanted, part, sizeof(part));
	error = chrome_json(&text, part, strlen(part));
	if (error)
		return error;
	output_format(&sink->out, ",\"otherData\":{\"selection\":\"%s\"}", text.data);
	free(text.data);
	return 0;
}

static int end_process(struct sink *sink, const struct process *process)
{
	return process->cpu ? chrome_end_samples(sink) : chrome_end_ranges(sink, process);
}

static int end(struct sink *sink, const struct run *run)
{
	int error;

	output_format(&sink->out, "\n],\"stackFrames\":{");
	error = put_stack_frames(sink, &run->paths);
	output_format(&sink->out, "\n}");
	if (!error && run->selection)
		error = put_selection(sink, run);
	output_format(&sink->out, "}\n");
	return error;
}

static void free_state(struct sink *sink)
{
	struct chrome *c = sink->state;

	if (!c)
		return;
	chrome_forget_ranges(c);
	sample_chart_free(&c->chart);
	chrome_forget_process(c);
	for (size_t i = 0; i < c->known_name_capacity; i++)
		free(c->known_names[i].data);
	free(c->known_names);
	free(c->pids);
	free(c->used_nodes);
	free(c);
	sink->state = NULL;
}

const struct exporter exporter_chrome = {
	.name = "chrome",
	.what = "Write Chrome trace events (JSON) for Perfetto and chrome://tracing",
	.uses = USES_TIMELINE | USES_CPU_LOGS,
	.begin = begin,
	.process = chrome_begin_process,
	.call = put_call,
	.work = chrome_put_work,
	.memory = put_memory,
	.range = chrome_put_range,
	.cpu_sample = chrome_put_sample,
	.process_end = end_process,
	.end = end,
	.free = free_state,
};
