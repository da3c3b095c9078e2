/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks of a Chrome trace: processes, threads, devices, streams and their lanes.
 */

#include "merge/export/chrome/chrome_tracks.h"

#include <stdio.h>
#include <stdlib.h>

#include "log/base/grow.h"
#include "merge/base/labels.h"

#include "merge/export/chrome/chrome_text.h"

void chrome_forget_process(struct chrome *c)
{
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		for (size_t i = 0; i < c->shape_counts[kind]; i++)
			free(c->shapes[kind][i].data);
		free(c->shapes[kind]);
		c->shapes[kind] = NULL;
		c->shape_counts[kind] = 0;
	}
	for (size_t i = 0; i < c->stream_count; i++) {
		if (!c->streams[i].tracks)
			continue;
		lanes_free(&c->streams[i].lanes);
		free(c->streams[i].tracks);
		free(c->streams[i].args);
	}
	free(c->streams);
	free(c->devices);
	c->streams = NULL;
	c->devices = NULL;
	c->has_unknown_thread = false;
	c->stream_count = c->device_count = c->device_capacity = 0;
}

/* Writes a metadata ("M") event that names a process or a track. */
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

/*
 * Two logs may have the same pid: from two hosts, or after the pid was reused. Viewers must not
 * merge them.
 */
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
	/* The samples of a thread have a track of their own. */
	for (size_t t = 1; t < process->model->threads.count && !error && !process->cpu; t++) {
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
	const char *gpu_name, *title;
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
	title = model_title(process->model, &process->model->device_names, 0, device);
	if (process->process_count > 1)
		error = asprintf(&name, "GPU %u%s%s%s%s%s of %s", device, title[0] ? " " : "",
				 title, gpu_name[0] ? " " : "", gpu_name,
				 simulated ? " [simulated]" : "", process->label);
	else
		error = asprintf(&name, "GPU %u%s%s%s%s%s", device, title[0] ? " " : "", title,
				 gpu_name[0] ? " " : "", gpu_name, simulated ? " [simulated]" : "");
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
	c->shape_counts[WORK_MEMSET] = MEMORY_KINDS;
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
	if (process->is_continued) {
		c->pid = c->pids[process->index];
		return 0;
	}
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

/* Caches what all work of a stream shares. Returns 0 or -ENOMEM. */
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

/* Adds and names the track of another lane of a stream. Returns 0 or -ENOMEM. */
static int add_track(struct sink *sink, const struct process *process, uint32_t id)
{
	struct chrome *c = sink->state;
	struct track_stream *stream = &c->streams[id];
	const struct stream *row = &process->model->streams.rows[id];
	uint32_t place = stream->track_count, track;
	const char *title = model_title(process->model, &process->model->stream_names, row->context,
					row->stream);
	char number[16] = "", *name;
	int error;

	if (!stream->tracks)
		stream->tracks = calloc(LANES_MAX, sizeof(*stream->tracks));
	if (!stream->tracks || (!place && make_stream(sink, process, id) < 0))
		return -ENOMEM;
	track = stream->tracks[stream->track_count++] = c->next_number++;
	if (place)
		snprintf(number, sizeof(number), " (%u)", place + 1);
	if (!row->defined)
		error = asprintf(&name, "[unknown stream]%s", number);
	else
		error = asprintf(&name, "context %u stream %u%s%s%s", row->context, row->stream,
				 title[0] ? " " : "", title, number);
	if (error < 0)
		return -ENOMEM;
	put_sort_index(sink, "thread_sort_index", stream->pid, track,
		       (uint64_t)id * LANES_MAX + place);
	error = put_metadata(sink, "thread_name", stream->pid, track, name);
	free(name);
	return error;
}

uint32_t chrome_work_track(struct sink *sink, const struct process *process, uint32_t id,
			   const struct work *work)
{
	struct chrome *c = sink->state;
	struct track_stream *stream = &c->streams[id];
	uint64_t end_ns = work->start_ns + work->duration_ns;
	int lane;

	if (end_ns < work->start_ns)
		end_ns = UINT64_MAX;
	lane = lanes_place(&stream->lanes, work->start_ns, end_ns);
	if (lane == LANE_FAILED)
		return 0;
	if (lane == LANE_NONE)
		return stream->tracks[stream->track_count - 1];
	if ((uint32_t)lane == stream->track_count && add_track(sink, process, id) < 0)
		return 0;
	return stream->tracks[lane];
}
