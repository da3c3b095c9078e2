/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracks of a Chrome trace: processes, threads, devices, streams and their lanes.
 */
#include "merge/chrome.h"

#include <stdio.h>
#include <stdlib.h>

#include "merge/grow.h"
#include "merge/labels.h"

void chrome_forget_process(struct chrome *c)
{
	chrome_forget_ranges(c);
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		for (size_t i = 0; i < c->shape_counts[kind]; i++)
			free(c->shapes[kind][i].data);
		free(c->shapes[kind]);
		c->shapes[kind] = NULL;
		c->shape_counts[kind] = 0;
	}
	for (size_t i = 0; i < c->stream_count; i++) {
		for (uint32_t l = 0; l < c->streams[i].lane_count; l++)
			free(c->streams[i].lanes[l].spans);
		free(c->streams[i].lanes);
		free(c->streams[i].args);
	}
	free(c->streams);
	free(c->devices);
	c->streams = NULL;
	c->devices = NULL;
	c->has_unknown_thread = false;
	c->stream_count = c->device_count = c->device_capacity = 0;
}

/* An "M" event that names a process or a track. */
static int put_metadata(struct sink *sink, const char *kind, uint32_t pid, uint32_t track,
			const char *name)
{
	struct chrome *c = sink->state;
	struct text json;
	int error = chrome_json(&json, name, strlen(name));

	if (error)
		return error;
	output_format(&sink->out,
		      "%s\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,"
		      "\"args\":{\"name\":\"%s\"}}",
		      c->has_events ? "," : "", kind, pid, track, json.data);
	c->has_events = true;
	free(json.data);
	return 0;
}

int chrome_name_track(struct sink *sink, uint32_t pid, uint32_t track, const char *name)
{
	return put_metadata(sink, "thread_name", pid, track, name);
}

static void put_sort_index(struct sink *sink, const char *kind, uint32_t pid, uint32_t track,
			   uint64_t index)
{
	struct chrome *c = sink->state;

	output_format(&sink->out,
		      "%s\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,"
		      "\"args\":{\"sort_index\":%llu}}",
		      c->has_events ? "," : "", kind, pid, track, (unsigned long long)index);
	c->has_events = true;
}

/* Logs of two hosts, or of two lives of one pid, may have the same pid: viewers must not mix. */
static int choose_pid(struct chrome *c, const struct process *process)
{
	int error = grow(&c->pids, &c->pid_capacity, process->index + 1, sizeof(*c->pids));

	if (error)
		return error;
	c->pid = process->log->header.pid;
	for (size_t i = 0; i < process->index; i++)
		if (c->pids[i] == c->pid)
			c->pid = c->next_number++;
	c->pids[process->index] = c->pid;
	return 0;
}

static int name_process(struct sink *sink, const struct process *process)
{
	struct chrome *c = sink->state;
	int error = put_metadata(sink, "process_name", c->pid, 0, process->label);

	put_sort_index(sink, "process_sort_index", c->pid, 0, process->index * 2);
	for (size_t t = 1; t < process->model->threads.count && !error; t++) {
		const struct thread *thread = &process->model->threads.rows[t];
		const char *text = names_text(&process->model->names, thread->name, NULL);

		if (thread->tid)
			error = put_metadata(sink, "thread_name", c->pid, thread->tid,
					     text[0] ? text : "[no name]");
	}
	return error;
}

uint32_t chrome_device_pid(struct sink *sink, const struct process *process, uint32_t device)
{
	struct chrome *c = sink->state;
	char key[32], *name;
	const char *gpu_name;
	bool simulated = !strcmp(model_meta(process->model, "gpu.simulated"), "1");
	uint32_t pid;
	int error;

	for (size_t i = 0; i < c->device_count; i++)
		if (c->devices[i] >> 32 == device)
			return (uint32_t)c->devices[i];
	if (grow(&c->devices, &c->device_capacity, c->device_count + 1, sizeof(*c->devices)) < 0)
		return 0;
	pid = c->next_number++;
	c->devices[c->device_count++] = (uint64_t)device << 32 | pid;
	snprintf(key, sizeof(key), "gpu.%u.name", device);
	gpu_name = model_meta(process->model, key);
	if (process->process_count > 1)
		error = asprintf(&name, "GPU %u%s%s%s of %s", device, gpu_name[0] ? " " : "",
				 gpu_name, simulated ? " [simulated]" : "", process->label);
	else
		error = asprintf(&name, "GPU %u%s%s%s", device, gpu_name[0] ? " " : "", gpu_name,
				 simulated ? " [simulated]" : "");
	if (error < 0)
		return 0;
	error = put_metadata(sink, "process_name", pid, 0, name);
	free(name);
	put_sort_index(sink, "process_sort_index", pid, 0, process->index * 2 + 1);
	return error ? 0 : pid;
}

int chrome_begin_process(struct sink *sink, const struct process *process)
{
	struct chrome *c = sink->state;
	int error;

	chrome_forget_process(c);
	c->shape_counts[WORK_KERNEL] = process->model->shapes.count;
	c->shape_counts[WORK_COPY] = process->model->copy_shapes.count;
	c->shape_counts[WORK_SET] = MEMORY_KINDS;
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		c->shapes[kind] = calloc(c->shape_counts[kind], sizeof(*c->shapes[kind]));
		if (!c->shapes[kind]) {
			c->shape_counts[kind] = 0;
			return -ENOMEM;
		}
	}
	c->streams = calloc(process->model->streams.count, sizeof(*c->streams));
	if (!c->streams)
		return -ENOMEM;
	c->stream_count = process->model->streams.count;
	error = choose_pid(c, process);
	return error ? error : name_process(sink, process);
}

uint32_t chrome_thread_track(struct sink *sink, const struct process *process, uint32_t thread)
{
	const struct model *model = process->model;
	struct chrome *c = sink->state;

	if (thread < model->threads.count && model->threads.rows[thread].tid)
		return model->threads.rows[thread].tid;
	if (!c->has_unknown_thread)
		put_metadata(sink, "thread_name", c->pid, UNKNOWN_THREAD, "[unknown thread]");
	c->has_unknown_thread = true;
	return UNKNOWN_THREAD;
}

/* What is the same for all work of a stream. 0 or -ENOMEM. */
static int make_stream(struct sink *sink, const struct process *process, uint32_t id)
{
	struct chrome *c = sink->state;
	struct track_stream *stream = &c->streams[id];
	const struct stream *row = &process->model->streams.rows[id];
	int length = asprintf(&stream->args, "\"device\":%u,\"context\":%u,\"stream\":%u",
			      row->device, row->context, row->stream);

	if (length < 0) {
		stream->args = NULL;
		return -ENOMEM;
	}
	stream->args_length = (size_t)length;
	stream->pid = chrome_device_pid(sink, process, row->device);
	return stream->pid ? 0 : -ENOMEM;
}

/* A further lane of a stream, with its name. 0 or -ENOMEM. */
static int add_lane(struct sink *sink, const struct process *process, uint32_t id)
{
	struct chrome *c = sink->state;
	struct track_stream *stream = &c->streams[id];
	const struct stream *row = &process->model->streams.rows[id];
	struct lane *lanes = realloc(stream->lanes, (stream->lane_count + 1) * sizeof(*lanes));
	char name[96];
	int length;

	if (!lanes)
		return -ENOMEM;
	stream->lanes = lanes;
	if (!stream->lane_count && make_stream(sink, process, id) < 0)
		return -ENOMEM;
	lanes[stream->lane_count] = (struct lane){.track = c->next_number++};
	length = row->defined ? snprintf(name, sizeof(name), "context %u stream %u", row->context,
					 row->stream)
			      : snprintf(name, sizeof(name), "[unknown stream]");
	if (stream->lane_count)
		snprintf(name + length, sizeof(name) - (size_t)length, " (%u)",
			 stream->lane_count + 1);
	put_sort_index(sink, "thread_sort_index", stream->pid, lanes[stream->lane_count].track,
		       (uint64_t)id * LANES_MAX + stream->lane_count);
	return put_metadata(sink, "thread_name", stream->pid, lanes[stream->lane_count++].track,
			    name);
}

/* The place among the spans of a lane where one from start_ns to end_ns belongs, or -1 if it would
 * overlap with one that is there. */
static int64_t place_in_lane(const struct lane *lane, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t low = 0, high = lane->span_count; /* the first that ends after start_ns */

	if (!high || lane->spans[high - 1].end_ns <= start_ns)
		return start_ns < lane->forgotten_until_ns ? -1 : (int64_t)high;
	if (start_ns < lane->forgotten_until_ns)
		return -1;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (lane->spans[middle].end_ns <= start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return lane->spans[low].start_ns < end_ns ? -1 : (int64_t)low;
}

static void forget_spans(struct lane *lane)
{
	uint32_t dropped = lane->span_count / 2;

	lane->forgotten_until_ns = lane->spans[dropped - 1].end_ns;
	lane->span_count -= dropped;
	memmove(lane->spans, lane->spans + dropped, lane->span_count * sizeof(*lane->spans));
}

static int put_in_lane(struct lane *lane, uint32_t place, uint64_t start_ns, uint64_t end_ns)
{
	if (place && lane->spans[place - 1].end_ns == start_ns) {
		lane->spans[place - 1].end_ns = end_ns;
		return 0;
	}
	if (lane->span_count == LANE_SPANS_MAX) {
		uint32_t before = lane->span_count;

		forget_spans(lane);
		before -= lane->span_count;
		/* Among what was dropped: nothing there can overlap with what is still to come. */
		if (place < before)
			return 0;
		place -= before;
	}
	if (grow(&lane->spans, &lane->span_capacity, lane->span_count + 1, sizeof(*lane->spans)) <
	    0)
		return -ENOMEM;
	memmove(&lane->spans[place + 1], &lane->spans[place],
		(lane->span_count - place) * sizeof(*lane->spans));
	lane->spans[place] = (struct lane_span){start_ns, end_ns};
	lane->span_count++;
	return 0;
}

uint32_t chrome_work_track(struct sink *sink, const struct process *process, uint32_t id,
			   const struct work *work)
{
	struct chrome *c = sink->state;
	struct track_stream *stream = &c->streams[id];
	uint64_t end_ns = work->start_ns + work->duration_ns;
	int64_t place = -1;
	uint32_t l;

	if (end_ns < work->start_ns)
		end_ns = UINT64_MAX;
	for (l = 0; l < stream->lane_count && place < 0; l++)
		place = place_in_lane(&stream->lanes[l], work->start_ns, end_ns);
	if (place >= 0)
		l--;
	else if (l == LANES_MAX)
		return stream->lanes[l - 1].track;
	else if (add_lane(sink, process, id) < 0)
		return 0;
	if (put_in_lane(&stream->lanes[l], place < 0 ? 0 : (uint32_t)place, work->start_ns,
			end_ns) < 0)
		return 0;
	return stream->lanes[l].track;
}
