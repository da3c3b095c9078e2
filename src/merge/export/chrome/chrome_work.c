/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU work in a Chrome trace: kernels, copies and memsets on the tracks of their streams, and the
 * flow arrows that lead to them.
 */

#include "merge/export/chrome/chrome_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/base/labels.h"

#include "merge/export/chrome/chrome_text.h"
#include "merge/export/chrome/chrome_tracks.h"

/* Takes the result of asprintf(). Returns 0 or -ENOMEM. */
static int keep_text(struct text *out, int length)
{
	if (length < 0) {
		out->data = NULL;
		return -ENOMEM;
	}
	out->length = (size_t)length;
	return 0;
}

static int json_name(struct text *out, const struct process *process, uint32_t name)
{
	const char *text;
	size_t length;

	if (name == NAME_FAILED)
		return -ENOMEM;
	text = names_text(&process->paths->names, name, &length);
	return chrome_json(out, text, length);
}

/* If the name was shortened, the arguments hold the full name. */
static int make_kernel(struct text *out, const struct process *process, uint32_t id)
{
	const struct shape *shape = &process->model->shapes.rows[id];
	uint32_t mangled = model_kernel_name(process->model, id);
	uint32_t shown = demangle(process->names, mangled, process->names->style);
	uint32_t full = demangle(process->names, mangled, DEMANGLE_FULL);
	struct text name = {0}, whole = {0};
	int error = json_name(&name, process, shown);

	if (!error)
		error = json_name(&whole, process, full);
	if (!error)
		error = keep_text(
			out,
			asprintf(&out->data,
				 "\"name\":\"%s\",\"args\":{%s%s%s\"grid\":[%u,%u,%u],"
				 "\"block\":[%u,%u,%u],\"registers\":%u,"
				 "\"static_shared_bytes\":%llu,\"dynamic_shared_bytes\":%llu,",
				 name.data, full == shown ? "" : "\"function\":\"",
				 full == shown ? "" : whole.data, full == shown ? "" : "\",",
				 shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
				 shape->block[1], shape->block[2], shape->registers,
				 (unsigned long long)shape->static_shared_bytes,
				 (unsigned long long)shape->dynamic_shared_bytes));
	free(name.data);
	free(whole.data);
	return error;
}

static int make_copy(struct text *out, const struct process *process, uint32_t id)
{
	const struct copy_shape *shape = &process->model->copy_shapes.rows[id];
	char devices[64] = "";

	if (shape->from_device && shape->to_device)
		snprintf(devices, sizeof(devices), "\"from_device\":%u,\"to_device\":%u,",
			 shape->from_device - 1, shape->to_device - 1);
	return keep_text(out,
			 asprintf(&out->data,
				  "\"name\":\"Memcpy %s\",\"args\":{\"source\":\"%s\","
				  "\"destination\":\"%s\",\"asynchronous\":%s,%s",
				  copy_kind_label(shape->kind), memory_kind_label(shape->source),
				  memory_kind_label(shape->destination),
				  shape->is_async ? "true" : "false", devices));
}

static int make_set(struct text *out, const struct process *process, uint32_t memory)
{
	(void)process;
	return keep_text(out,
			 asprintf(&out->data, "\"name\":\"Memset\",\"args\":{\"memory\":\"%s\",",
				  memory_kind_label(memory)));
}

static const struct {
	const char *head;
	int (*make)(struct text *out, const struct process *process, uint32_t id);
} kinds[WORK_KINDS] = {
	[WORK_KERNEL] = {"{\"ph\":\"X\",\"cat\":\"kernel\"", make_kernel},
	[WORK_COPY] = {"{\"ph\":\"X\",\"cat\":\"memcpy\"", make_copy},
	[WORK_MEMSET] = {"{\"ph\":\"X\",\"cat\":\"memset\"", make_set},
};

/* Returns the text that all work of this shape shares, formatted on first use. */
static const struct text *shape_text(struct chrome *c, const struct process *process,
				     const struct work *work)
{
	uint32_t id = work->shape < c->shape_counts[work->kind] ? work->shape : 0;
	struct text *text = &c->shapes[work->kind][id];

	if (!text->data && kinds[work->kind].make(text, process, id) < 0)
		return NULL;
	return text;
}

/* Writes bytes and bandwidth. Bytes per nanosecond equal gigabytes per second; three decimals. */
static char *put_bytes(char *p, const struct work *work)
{
	unsigned __int128 thousandths = (unsigned __int128)work->bytes * 1000;

	p = TEXT_LITERAL(p, ",\"bytes\":");
	p = text_u64(p, work->bytes);
	if (!work->duration_ns)
		return p;
	thousandths /= work->duration_ns;
	p = TEXT_LITERAL(p, ",\"gigabytes_per_second\":");
	return text_us(p, (int64_t)((uint64_t)thousandths & INT64_MAX));
}

/* A formatted number that is written several times. */
struct number {
	char text[32];
	size_t length;
};

static inline char *put_number(char *p, const struct number *number)
{
	memcpy(p, number->text, sizeof(number->text));
	return p + number->length;
}

#define FLOW_START  "{\"ph\":\"s\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":"
#define FLOW_FINISH "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":"

/* Writes the flow arrow from the call to the work. */
static char *put_flow(struct chrome *c, char *p, uint32_t thread, int64_t enter_ns,
		      uint32_t work_pid, uint32_t work_track, const struct number *start)
{
	struct number id;

	id.length = (size_t)(text_u64(id.text, ++c->next_flow) - id.text);
	p = chrome_begin_event(c, p);
	p = TEXT_LITERAL(p, FLOW_START);
	p = put_number(p, &id);
	p = chrome_put_track(c, p, c->pid, thread);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = text_us(p, enter_ns);
	*p++ = '}';
	p = chrome_begin_event(c, p);
	p = TEXT_LITERAL(p, FLOW_FINISH);
	p = put_number(p, &id);
	p = chrome_put_track(c, p, work_pid, work_track);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = put_number(p, start);
	*p++ = '}';
	return p;
}

int chrome_put_work(struct sink *sink, const struct process *process, const struct work *work,
		    const struct launch *launch)
{
	struct chrome *c = sink->state;
	const struct text *shape = shape_text(c, process, work);
	uint32_t id = work->stream < c->stream_count ? work->stream : 0;
	const struct track_stream *stream = &c->streams[id];
	uint32_t track = chrome_work_track(sink, process, id, work);
	uint32_t thread = launch ? chrome_thread_track(sink, process, launch->thread) : 0;
	struct number start;
	char *p;

	if (!track || !shape)
		return -ENOMEM;
	start.length =
		(size_t)(text_us(start.text, chrome_time(process, work->start_ns)) - start.text);
	p = chrome_begin_event(c, output_room(&sink->out, EVENT_BYTES_MAX));
	p = text_copy(p, kinds[work->kind].head, strlen(kinds[work->kind].head));
	p = chrome_put_track(c, p, stream->pid, track);
	p = TEXT_LITERAL(p, ",\"ts\":");
	p = put_number(p, &start);
	p = TEXT_LITERAL(p, ",\"dur\":");
	p = text_us(p, (int64_t)(work->duration_ns & INT64_MAX));
	*p++ = ',';
	output_advance(&sink->out, p);
	output_text(&sink->out, shape->data, shape->length);
	p = output_room(&sink->out, EVENT_BYTES_MAX);
	p = text_copy(p, stream->args, stream->args_length);
	p = TEXT_LITERAL(p, ",\"correlation\":");
	p = text_u64(p, work->correlation);
	if (work->graph_node) {
		p = TEXT_LITERAL(p, ",\"graph_node\":");
		p = text_u64(p, work->graph_node);
	}
	if (work->kind != WORK_KERNEL)
		p = put_bytes(p, work);
	p = TEXT_LITERAL(p, "}}");
	if (launch)
		p = put_flow(c, p, thread, chrome_time(process, launch->enter_ns), stream->pid,
			     track, &start);
	output_advance(&sink->out, p);
	return 0;
}
