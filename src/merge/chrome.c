/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome's trace event format, for Perfetto and chrome://tracing, written as a stream.
 *
 * Each log has a process with the tracks of its threads, which carry the API calls, and a process
 * for each of its devices with a track for each context and stream, which carry the kernels. An
 * arrow leads from each launch to each of its kernels. Viewers want the spans of a track to nest;
 * kernels of one stream that run at the same time (in a graph) go to further lanes of the stream.
 *
 * Events are millions: what is the same in many is put into text once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "merge/exporter.h"
#include "merge/grow.h"
#include "merge/text.h"

#define NUMBERS_FIRST	(1u << 24) /* of made-up processes and tracks: above any real pid */
#define LANES_MAX	64
#define UNKNOWN_THREAD	0    /* a tid that no thread has */
#define EVENT_BYTES_MAX 1024 /* of an event without the texts in it */

struct lane {
	uint32_t track;
	uint64_t busy_until_ns;
};

struct track_stream {
	uint32_t pid; /* of the device's process */
	uint32_t lane_count;
	struct lane *lanes;
	char *args; /* `"device":0,"context":1,"stream":7` */
	size_t args_length;
};

struct text {
	char *data;
	size_t length;
};

struct chrome {
	bool has_events;
	uint32_t next_number;
	uint64_t next_flow;
	uint32_t *pids; /* taken, by process */
	size_t pid_capacity;
	bool *used_nodes; /* by path node: a frame of a call */
	size_t used_capacity;

	/* Of the process at hand: */
	uint32_t pid;
	bool has_unknown_thread;
	struct text *shapes; /* by XT_SHAPE_ID: what a kernel of it says of itself */
	size_t shape_count;
	struct text *api_names; /* by name in paths */
	size_t api_capacity;
	struct track_stream *streams; /* by XT_STREAM_ID */
	size_t stream_count;
	uint64_t *devices; /* device << 32 | pid of the processes that were made */
	size_t device_count;
	size_t device_capacity;
};

static void forget_process(struct chrome *c)
{
	for (size_t i = 0; i < c->shape_count; i++)
		free(c->shapes[i].data);
	free(c->shapes);
	for (size_t i = 0; i < c->stream_count; i++) {
		free(c->streams[i].lanes);
		free(c->streams[i].args);
	}
	free(c->streams);
	free(c->devices);
	c->shapes = NULL;
	c->streams = NULL;
	c->devices = NULL;
	c->has_unknown_thread = false;
	c->shape_count = c->stream_count = c->device_count = c->device_capacity = 0;
}

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

/* Begins an event; the caller has asked for room. */
static char *begin_event(struct chrome *c, char *p)
{
	if (c->has_events)
		*p++ = ',';
	c->has_events = true;
	*p++ = '\n';
	return p;
}

static char *put_track(char *p, uint32_t pid, uint32_t track)
{
	p = TEXT_LITERAL(p, ",\"pid\":");
	p = text_u64(p, pid);
	p = TEXT_LITERAL(p, ",\"tid\":");
	return text_u64(p, track);
}

/* The text as the inside of a JSON string, in memory of its own. 0 or -ENOMEM. */
static int make_json(struct text *out, const char *text, size_t length)
{
	out->data = malloc(text_json_bound(length) + 1);
	if (!out->data)
		return -ENOMEM;
	out->length = text_json(out->data, text, length);
	out->data[out->length] = '\0';
	return 0;
}

/* An "M" event that names a process or a track. */
static int put_metadata(struct sink *sink, const char *kind, uint32_t pid, uint32_t track,
			const char *name)
{
	struct chrome *c = sink->state;
	struct text json;
	int error = make_json(&json, name, strlen(name));

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

/* The made-up process of a device, named when it is first met. 0 if memory ran out. */
static uint32_t device_pid(struct sink *sink, const struct process *process, uint32_t device)
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

static int make_shape(struct text *out, const struct process *process, uint32_t id)
{
	const struct shape *shape = &process->model->shapes.rows[id];
	uint32_t name =
		demangle(process->names, model_kernel_name(process->model, id), DEMANGLE_FULL);
	struct text json;
	const char *text;
	size_t length;
	int error;

	if (name == NAME_FAILED)
		return -ENOMEM;
	text = names_text(&process->paths->names, name, &length);
	error = make_json(&json, text, length);
	if (error)
		return error;
	error = asprintf(&out->data,
			 "\"name\":\"%s\",\"args\":{\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],"
			 "\"registers\":%u,\"static_shared_bytes\":%llu,"
			 "\"dynamic_shared_bytes\":%llu,",
			 json.data, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
			 shape->block[1], shape->block[2], shape->registers,
			 (unsigned long long)shape->static_shared_bytes,
			 (unsigned long long)shape->dynamic_shared_bytes);
	free(json.data);
	if (error < 0) {
		out->data = NULL;
		return -ENOMEM;
	}
	out->length = (size_t)error;
	return 0;
}

/* What a kernel of that shape says of itself, worked out when it is first met. */
static const struct text *shape_text(struct chrome *c, const struct process *process, uint32_t id)
{
	struct text *text = &c->shapes[id];

	if (!text->data && make_shape(text, process, id) < 0)
		return NULL;
	return text;
}

static int begin_process(struct sink *sink, const struct process *process)
{
	struct chrome *c = sink->state;
	int error;

	forget_process(c);
	c->shapes = calloc(process->model->shapes.count, sizeof(*c->shapes));
	c->streams = calloc(process->model->streams.count, sizeof(*c->streams));
	if (!c->shapes || !c->streams)
		return -ENOMEM;
	c->shape_count = process->model->shapes.count;
	c->stream_count = process->model->streams.count;
	error = choose_pid(c, process);
	return error ? error : name_process(sink, process);
}

static const struct text *api_text(struct chrome *c, const struct process *process,
				   const struct launch *call)
{
	uint32_t name = frames_api_name(process->frames, call->stack, call->api);
	const char *text;
	size_t length;

	if (grow(&c->api_names, &c->api_capacity, name + 1, sizeof(*c->api_names)) < 0)
		return NULL;
	if (c->api_names[name].data)
		return &c->api_names[name];
	text = names_text(&process->paths->names, name, &length);
	return make_json(&c->api_names[name], text, length) ? NULL : &c->api_names[name];
}

/* The track of a thread; one that the log does not know is shown as such. */
static uint32_t thread_track(struct sink *sink, const struct process *process, uint32_t thread)
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

static int64_t time_of(const struct process *process, uint64_t ns)
{
	return (int64_t)(ns - (uint64_t)process->origin_ns);
}

/* The frame that called, for viewers that show stacks. 0 or -ENOMEM. */
static int note_frame(struct chrome *c, const struct process *process, uint32_t stack,
		      uint32_t *node_out)
{
	uint32_t node;

	*node_out = PATH_ROOT;
	if (!frames_has_stack(process->frames, stack))
		return 0;
	node = process->frames->nodes[stack];
	if (grow(&c->used_nodes, &c->used_capacity, node + 1, sizeof(*c->used_nodes)) < 0)
		return -ENOMEM;
	c->used_nodes[node] = true;
	*node_out = node;
	return 0;
}

static int put_call(struct sink *sink, const struct process *process, const struct launch *call,
		    uint64_t duration_ns, uint64_t result)
{
	struct chrome *c = sink->state;
	const struct text *name = api_text(c, process, call);
	uint32_t track = thread_track(sink, process, call->thread);
	uint32_t node;
	char *p;

	if (!name || note_frame(c, process, call->stack, &node) < 0)
		return -ENOMEM;
	p = begin_event(c, output_room(&sink->out, EVENT_BYTES_MAX));
	p = TEXT_LITERAL(p, "{\"ph\":\"X\",\"cat\":\"api\",\"name\":\"");
	output_advance(&sink->out, p);
	output_text(&sink->out, name->data, name->length);
	p = output_room(&sink->out, EVENT_BYTES_MAX);
	*p++ = '"';
	p = put_track(p, c->pid, track);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, time_of(process, call->enter_ns));
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

/* What is the same for all kernels of a stream. 0 or -ENOMEM. */
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
	stream->pid = device_pid(sink, process, row->device);
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

/* The track for a kernel: of a lane in which nothing is running by then. 0 if memory ran out. */
static uint32_t kernel_track(struct sink *sink, const struct process *process, uint32_t id,
			     const struct kernel *kernel)
{
	struct chrome *c = sink->state;
	struct track_stream *stream = &c->streams[id];
	uint64_t end_ns = kernel->start_ns + kernel->duration_ns;
	uint32_t l;

	for (l = 0; l < stream->lane_count; l++)
		if (stream->lanes[l].busy_until_ns <= kernel->start_ns)
			break;
	if (l == LANES_MAX)
		l--;
	if (l == stream->lane_count && add_lane(sink, process, id) < 0)
		return 0;
	if (end_ns > stream->lanes[l].busy_until_ns)
		stream->lanes[l].busy_until_ns = end_ns;
	return stream->lanes[l].track;
}

/* One end of an arrow. */
static char *put_flow(struct chrome *c, char *p, const char *head, size_t head_length, uint32_t pid,
		      uint32_t track, int64_t time_ns)
{
	p = begin_event(c, p);
	p = text_copy(p, head, head_length);
	p = text_u64(p, c->next_flow);
	p = put_track(p, pid, track);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, time_ns);
	*p++ = '}';
	return p;
}

#define FLOW_START  "{\"ph\":\"s\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":"
#define FLOW_FINISH "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":"

static int put_kernel(struct sink *sink, const struct process *process, const struct kernel *kernel,
		      const struct launch *launch)
{
	struct chrome *c = sink->state;
	const struct text *shape =
		shape_text(c, process, kernel->shape < c->shape_count ? kernel->shape : 0);
	uint32_t id = kernel->stream < c->stream_count ? kernel->stream : 0;
	const struct track_stream *stream = &c->streams[id];
	uint32_t track = kernel_track(sink, process, id, kernel);
	uint32_t thread = launch ? thread_track(sink, process, launch->thread) : 0;
	char *p;

	if (!track || !shape)
		return -ENOMEM;
	p = begin_event(c, output_room(&sink->out, EVENT_BYTES_MAX));
	p = TEXT_LITERAL(p, "{\"ph\":\"X\",\"cat\":\"kernel\"");
	p = put_track(p, stream->pid, track);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, time_of(process, kernel->start_ns));
	p = TEXT_LITERAL(p, ",\"dur\":");
	p = text_us(p, (int64_t)(kernel->duration_ns & INT64_MAX));
	*p++ = ',';
	output_advance(&sink->out, p);
	output_text(&sink->out, shape->data, shape->length);
	p = output_room(&sink->out, EVENT_BYTES_MAX);
	p = text_copy(p, stream->args, stream->args_length);
	p = TEXT_LITERAL(p, ",\"correlation\":");
	p = text_u64(p, kernel->correlation);
	if (kernel->graph_node) {
		p = TEXT_LITERAL(p, ",\"graph_node\":");
		p = text_u64(p, kernel->graph_node);
	}
	p = TEXT_LITERAL(p, "}}");
	if (launch) {
		c->next_flow++;
		p = put_flow(c, p, FLOW_START, sizeof(FLOW_START) - 1, c->pid, thread,
			     time_of(process, launch->enter_ns));
		p = put_flow(c, p, FLOW_FINISH, sizeof(FLOW_FINISH) - 1, stream->pid, track,
			     time_of(process, kernel->start_ns));
	}
	output_advance(&sink->out, p);
	return 0;
}

/* The frames that calls refer to, each with the one that called it. */
static int put_stack_frames(struct sink *sink, const struct paths *paths)
{
	struct chrome *c = sink->state;
	const char *separator = "";
	int error = grow(&c->used_nodes, &c->used_capacity, paths->node_count, sizeof(bool));

	/* A node is younger than its parent, so one walk from the youngest marks all of them. */
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
		error = make_json(&json, name, length);
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

static int end(struct sink *sink, const struct run *run)
{
	int error;

	output_format(&sink->out, "\n],\"stackFrames\":{");
	error = put_stack_frames(sink, &run->paths);
	output_format(&sink->out, "\n}}\n");
	return error;
}

static void free_state(struct sink *sink)
{
	struct chrome *c = sink->state;

	if (!c)
		return;
	forget_process(c);
	for (size_t i = 0; i < c->api_capacity; i++)
		free(c->api_names[i].data);
	free(c->api_names);
	free(c->pids);
	free(c->used_nodes);
	free(c);
	sink->state = NULL;
}

const struct exporter exporter_chrome = {
	.name = "chrome",
	.what = "Chrome trace events (JSON), for Perfetto and chrome://tracing",
	.begin = begin,
	.process = begin_process,
	.call = put_call,
	.kernel = put_kernel,
	.end = end,
	.free = free_state,
};
