/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU work in a Perfetto trace: kernels, copies and memsets on the tracks of their streams.
 *
 * Perfetto processes events of equal time in file order. On one track, an end must therefore not be
 * written after a begin of the same time (see lanes.h).
 */
#include "merge/export/perfetto/perfetto_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/base/labels.h"

#include "merge/export/perfetto/perfetto_events.h"
#include "merge/export/perfetto/perfetto_tracks.h"

static int keep_value(struct perfetto *p, struct perfetto_shape *shape, char *text, int length)
{
	if (length < 0)
		return -ENOMEM;
	shape->value = names_intern(&p->values, text, (size_t)length);
	free(text);
	return shape->value == NAME_FAILED ? -ENOMEM : 0;
}

static int make_kernel(struct perfetto *p, const struct process *process, uint32_t id,
		       struct perfetto_shape *out)
{
	const struct shape *shape = &process->model->shapes.rows[id];
	char *text = NULL;
	int length = asprintf(
		&text, "grid %ux%ux%u, block %ux%ux%u, %u registers, %llu + %llu bytes shared",
		shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0], shape->block[1],
		shape->block[2], shape->registers, (unsigned long long)shape->static_shared_bytes,
		(unsigned long long)shape->dynamic_shared_bytes);

	out->name = demangle(process->names, model_kernel_name(process->model, id),
			     process->names->style);
	return keep_value(p, out, text, length);
}

static int make_copy(struct perfetto *p, const struct process *process, uint32_t id,
		     struct perfetto_shape *out)
{
	const struct copy_shape *shape = &process->model->copy_shapes.rows[id];
	char devices[64] = "", name[64], *text = NULL;
	int length;

	if (shape->from_device && shape->to_device)
		snprintf(devices, sizeof(devices), ", GPU %u to GPU %u", shape->from_device - 1,
			 shape->to_device - 1);
	length = asprintf(&text, "%s to %s, %s%s", memory_kind_label(shape->source),
			  memory_kind_label(shape->destination),
			  shape->is_async ? "asynchronous" : "synchronous", devices);
	snprintf(name, sizeof(name), "Memcpy %s", copy_kind_label(shape->kind));
	out->name = names_intern(process->names->shown, name, strlen(name));
	return keep_value(p, out, text, length);
}

static int make_set(struct perfetto *p, const struct process *process, uint32_t memory,
		    struct perfetto_shape *out)
{
	const char *label = memory_kind_label(memory);

	out->name = names_intern(process->names->shown, "Memset", strlen("Memset"));
	out->value = names_intern(&p->values, label, strlen(label));
	return out->value == NAME_FAILED ? -ENOMEM : 0;
}

static const struct {
	enum annotation annotation;
	int (*make)(struct perfetto *p, const struct process *process, uint32_t id,
		    struct perfetto_shape *out);
} kinds[WORK_KINDS] = {
	[WORK_KERNEL] = {ANNOTATION_LAUNCH, make_kernel},
	[WORK_COPY] = {ANNOTATION_COPY, make_copy},
	[WORK_MEMSET] = {ANNOTATION_COPY, make_set},
};

/* Returns what all work of this shape shares, computed on first use. */
static const struct perfetto_shape *shape_of(struct perfetto *p, const struct process *process,
					     const struct work *work)
{
	uint32_t id = work->shape < p->shape_counts[work->kind] ? work->shape : 0;
	struct perfetto_shape *shape = &p->shapes[work->kind][id];

	if (shape->value)
		return shape;
	if (kinds[work->kind].make(p, process, id, shape) < 0 || shape->name == NAME_FAILED)
		return NULL;
	return shape;
}

static struct perfetto_stream *stream_of(struct sink *sink, const struct process *process,
					 uint32_t id)
{
	struct perfetto *p = sink->state;
	struct perfetto_stream *stream = p->streams[id];

	if (stream)
		return stream;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return NULL;
	stream->lanes.not_before = true;
	p->streams[id] = stream;
	stream->device_track =
		perfetto_device(sink, process, process->model->streams.rows[id].device);
	return stream->device_track ? stream : NULL;
}

/* Adds a track for a lane of a stream. Lane 0 is the stream's main track. */
static uint64_t add_lane_track(struct sink *sink, const struct process *process, uint32_t id,
			       uint32_t lane)
{
	struct perfetto *p = sink->state;
	const struct stream *row = &process->model->streams.rows[id];
	char name[96];
	int length = row->defined ? snprintf(name, sizeof(name), "context %u stream %u",
					     row->context, row->stream)
				  : snprintf(name, sizeof(name), "[unknown stream]");

	if (lane)
		snprintf(name + length, sizeof(name) - (size_t)length, " (%u)", lane + 1);
	return perfetto_add_track(sink, p->streams[id]->device_track, name);
}

/*
 * Returns the sequence for the work. Sets *track_out to a separate track, or 0. NULL if out of
 * memory.
 */
static struct sequence *place(struct sink *sink, const struct process *process,
			      const struct work *work, uint64_t *track_out)
{
	struct perfetto *p = sink->state;
	uint32_t id = work->stream < p->stream_count ? work->stream : 0;
	struct perfetto_stream *stream = stream_of(sink, process, id);
	uint64_t end_ns = work->start_ns + work->duration_ns, track;
	struct sequence *sequence;
	int lane;

	if (!stream)
		return NULL;
	if (end_ns < work->start_ns)
		end_ns = UINT64_MAX;
	lane = lanes_place(&stream->lanes, work->start_ns, end_ns);
	if (lane == LANE_FAILED)
		return NULL;
	*track_out = 0;
	if (lane == LANE_NONE) {
		*track_out = add_lane_track(sink, process, id, LANES_MAX);
		return *track_out ? &stream->sequences[0] : NULL;
	}
	sequence = &stream->sequences[lane];
	if (sequence->id)
		return sequence;
	track = add_lane_track(sink, process, id, (uint32_t)lane);
	return track && !perfetto_begin_sequence(sink, sequence, track) ? sequence : NULL;
}

int perfetto_put_work(struct sink *sink, const struct process *process, const struct work *work,
		      const struct launch *launch, uint64_t flow)
{
	const struct perfetto_shape *shape = shape_of(sink->state, process, work);
	uint64_t track;
	uint32_t stack = launch ? launch->stack : 0, node;
	struct sequence *sequence = place(sink, process, work, &track);
	struct perfetto_event event;

	if (!shape || !sequence ||
	    perfetto_intern_name(sink, sequence, &process->paths->names, shape->name) < 0 ||
	    perfetto_intern_value(sink, sequence, shape->value) < 0 ||
	    perfetto_intern_stack(sink, sequence, process, stack, &node) < 0)
		return -ENOMEM;
	event = (struct perfetto_event){
		.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN,
		.time_ns = perfetto_time(process, work->start_ns),
		.track = track,
		.name = shape->name + 1,
		.stack = node,
		.weight = node == PATH_ROOT ? 0 : work->duration_ns,
		.flow = flow,
		.ends_flow = !work->graph_node,
		.text = shape->value,
		.text_is = (uint8_t)kinds[work->kind].annotation,
		.number = work->bytes,
		.number_is = ANNOTATION_BYTES,
		.has_number = work->kind != WORK_KERNEL,
	};
	perfetto_put_event(sink, sequence, &event);
	event = (struct perfetto_event){
		.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END,
		.time_ns = event.time_ns + work->duration_ns,
		.track = track,
	};
	perfetto_put_event(sink, sequence, &event);
	return 0;
}
