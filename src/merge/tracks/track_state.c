/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracks of a timeline: which there are, their names, and lanes for work that overlaps.
 *
 * Lanes are rows of a stream whose spans do not overlap. Kernels, copies and memsets arrive in
 * separate batches, each in order. A span may therefore belong between earlier ones, so each lane
 * keeps its latest spans.
 */
#include "merge/tracks/track_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "merge/base/labels.h"

#define LANES_MAX      64
#define LANE_SPANS_MAX 8192

#define LANE_NONE (-1) /* it overlaps with a span in each of LANES_MAX lanes */

struct lane_span {
	uint64_t start_ns;
	uint64_t end_ns;
};

struct lane {
	struct lane_span *spans; /* ordered; adjacent spans are merged */
	size_t span_capacity;
	uint32_t span_count;
	uint64_t forgotten_until_ns; /* spans before this time have been dropped */
};

/*
 * Zeros are empty. With not_before, a span that ends exactly where an earlier added one starts
 * counts as overlapping. Some formats order a begin and an end at the same time by their position.
 */
struct lanes {
	struct lane *list;
	uint32_t count;
	bool not_before;
};

struct stream_tracks {
	struct lanes lanes;
	struct track **list; /* by lane; LANES_MAX: for work without a lane */
};

/* The index at which a span belongs in a lane, or -1 if it would overlap with another. */
static int64_t place_in_lane(const struct lane *lane, uint64_t start_ns, uint64_t end_ns,
			     bool not_before)
{
	uint32_t low = 0,
		 high = lane->span_count; /* finds the first span that ends after start_ns */

	if (start_ns < lane->forgotten_until_ns)
		return -1;
	if (!high || lane->spans[high - 1].end_ns <= start_ns)
		return (int64_t)high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (lane->spans[middle].end_ns <= start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (lane->spans[low].start_ns < end_ns ||
	    (not_before && lane->spans[low].start_ns == end_ns))
		return -1;
	return (int64_t)low;
}

static void forget_spans(struct lane *lane)
{
	uint32_t dropped = lane->span_count / 2;

	lane->forgotten_until_ns = lane->spans[dropped - 1].end_ns;
	lane->span_count -= dropped;
	memmove(lane->spans, lane->spans + dropped, lane->span_count * sizeof(*lane->spans));
}

static void put_in_lane(struct lane *lane, uint32_t place, uint64_t start_ns, uint64_t end_ns)
{
	if (place && lane->spans[place - 1].end_ns == start_ns) {
		lane->spans[place - 1].end_ns = end_ns;
		return;
	}
	if (lane->span_count == LANE_SPANS_MAX) {
		uint32_t before = lane->span_count;

		forget_spans(lane);
		before -= lane->span_count;
		/* It belongs among the dropped spans, with which no later span can overlap. */
		if (place < before)
			return;
		place -= before;
	}
	xt_grow(lane->spans, lane->span_capacity, lane->span_count + 1);
	memmove(&lane->spans[place + 1], &lane->spans[place],
		(lane->span_count - place) * sizeof(*lane->spans));
	lane->spans[place] = (struct lane_span){start_ns, end_ns};
	lane->span_count++;
}

static void lanes_grow(struct lanes *lanes)
{
	lanes->list = xt_reallocarray(lanes->list, lanes->count + 1, sizeof(*lanes->list));
	lanes->list[lanes->count++] = (struct lane){0};
}

/*
 * Assigns a span to the first lane that is free then; adds a lane if needed. Returns the lane, or
 * LANE_NONE.
 */
static int lanes_place(struct lanes *lanes, uint64_t start_ns, uint64_t end_ns)
{
	int64_t place = -1;
	uint32_t l;

	for (l = 0; l < lanes->count; l++) {
		place = place_in_lane(&lanes->list[l], start_ns, end_ns, lanes->not_before);
		if (place >= 0)
			break;
	}
	if (l == LANES_MAX)
		return LANE_NONE;
	if (l == lanes->count)
		lanes_grow(lanes);
	put_in_lane(&lanes->list[l], place < 0 ? 0 : (uint32_t)place, start_ns, end_ns);
	return (int)l;
}

static void lanes_free(struct lanes *lanes)
{
	for (uint32_t l = 0; l < lanes->count; l++)
		free(lanes->list[l].spans);
	free(lanes->list);
}

char *track_device_name(const struct model *model, uint32_t device)
{
	const char *title = model_title(model, XT_RANGE_NAME_DEVICE, 0, device);
	const char *gpu = model_gpu(model, device, "name");

	return xt_asprintf("GPU %u%s%s%s%s", device, title[0] ? " " : "", title, gpu[0] ? " " : "",
			   gpu);
}

/* "context 1 stream 7 copies", for a lane other than 0 also its number. The caller frees it. */
static char *track_stream_name(const struct model *model, uint32_t stream, uint32_t lane)
{
	const struct stream *row = &model->streams.rows[stream];
	const char *title = model_title(model, XT_RANGE_NAME_STREAM, row->context, row->stream);
	char number[16] = "";

	if (lane)
		snprintf(number, sizeof(number), " (%u)", lane + 1);
	if (!row->defined)
		return xt_asprintf("[unknown stream]%s", number);
	return xt_asprintf("context %u stream %u%s%s%s", row->context, row->stream,
			   title[0] ? " " : "", title, number);
}

const char *track_thread_name(const struct model *model, uint32_t thread)
{
	const struct thread *row = &model->threads.rows[thread < model->threads.count ? thread : 0];
	const char *name = names_text(&model->names, row->name, NULL);

	return !row->tid ? "[unknown thread]" : name[0] ? name : "[no name]";
}

uint32_t track_work_name(const struct process *process, enum work_kind kind, uint32_t shape)
{
	const struct model *model = process->model;
	char label[64] = "Memset";

	if (kind == WORK_KERNEL)
		return demangle(process->names, model_kernel_name(model, shape),
				process->names->style);
	if (kind == WORK_COPY)
		snprintf(label, sizeof(label), "Memcpy %s",
			 copy_kind_label(model->copy_shapes.rows[shape].kind));
	return names_intern(process->names->shown, label, strlen(label));
}

#define TEXT_ENTRY(name, text) text,
const char *const track_categories[CATEGORIES] = {TRACK_CATEGORIES(TEXT_ENTRY)};
const char *const track_args[ARG_KEYS] = {TRACK_ARGS(TEXT_ENTRY)};

void arg_interned(struct tracks *t, struct track_arg *arg, enum track_arg_key key, char *text)
{
	arg->key = key;
	arg->type = ARG_INTERNED;
	arg->name = names_intern(&t->texts, text, strlen(text));
	free(text);
}

static void track_state_append(struct track_list *list, struct track *track)
{
	xt_append(list->rows, list->count, list->capacity, track);
}

static void declare(struct tracks *t, struct track *track, const char *name)
{
	track->name = name;
	t->writer->track(t, track);
	track->name = NULL;
}

struct track *tracks_add(struct tracks *t, const struct track *track)
{
	struct track *copy = xt_calloc(1, sizeof(*copy) + t->writer->track_bytes);

	*copy = *track;
	track_state_append(&t->all, copy);
	declare(t, copy, track->name);
	return copy;
}

/*
 * Two logs may have the same pid: from two hosts, or after the pid was reused. Viewers must not
 * merge them.
 */
static uint32_t unique_pid(struct tracks *t)
{
	uint32_t own = t->process->log->header.pid, pid = own;

	for (size_t i = 0; i < t->process->index && i < t->roots.count; i++)
		if (t->roots.rows[i] && t->roots.rows[i]->number == pid)
			pid = t->next_number++;
	return pid;
}

static void add_root(struct tracks *t)
{
	size_t index = t->process->index;

	t->root = tracks_add(t, &(struct track){.kind = TRACK_PROCESS,
						.name = t->process->label,
						.number = unique_pid(t),
						.order = index * 2});
	xt_grow(t->roots.rows, t->roots.capacity, index + 1);
	t->roots.rows[index] = t->root;
	t->roots.count = index + 1 > t->roots.count ? index + 1 : t->roots.count;
}

void tracks_begin_log(struct tracks *t, const struct process *process)
{
	const struct model *model = process->model;

	t->process = process;
	t->log.threads = xt_calloc(model->threads.count, sizeof(*t->log.threads));
	t->log.streams = xt_calloc(model->streams.count, sizeof(*t->log.streams));
	t->log.stream_count = model->streams.count;
	if (process->is_continued) {
		t->root = t->roots.rows[process->index];
		return;
	}
	add_root(t);
	for (uint32_t i = 1; t->writer->is_flat && !process->cpu && i < model->threads.count; i++)
		if (model->threads.rows[i].tid)
			tracks_thread(t, i);
}

void tracks_end_log(struct tracks *t)
{
	for (size_t i = t->kept_count; i < t->all.count && t->writer->forget; i++)
		t->writer->forget(t->all.rows[i]);
	for (size_t s = 0; s < t->log.stream_count; s++) {
		lanes_free(&t->log.streams[s].lanes);
		free(t->log.streams[s].list);
	}
	free_all(t->log.threads, t->log.streams, t->log.devices.rows);
	t->log = (struct track_log){0};
	t->kept_count = t->all.count;
}

void tracks_free_all(struct tracks *t)
{
	for (size_t i = 0; i < t->all.count; i++)
		free(t->all.rows[i]);
	free_all(t->all.rows, t->roots.rows, t->known.rows);
}

/* A CPU log continues the threads of the traced log of its process. */
static struct track *known_thread(const struct tracks *t, uint32_t tid)
{
	for (size_t i = 0; t->process->cpu && i < t->known.count; i++)
		if (t->known.rows[i]->parent == t->root && t->known.rows[i]->number == tid)
			return t->known.rows[i];
	return NULL;
}

struct track *tracks_find_thread(struct tracks *t, uint32_t thread)
{
	const struct model *model = t->process->model;
	uint32_t tid = thread < model->threads.count ? model->threads.rows[thread].tid : 0;
	struct track **place = &t->log.threads[tid ? thread : 0];

	if (!*place)
		*place = known_thread(t, tid);
	if (!*place) {
		*place = tracks_add(t, &(struct track){.kind = TRACK_THREAD,
						       .parent = t->root,
						       .name = track_thread_name(model, thread),
						       .number = tid,
						       .id = tid ? thread : 0});
		track_state_append(&t->known, *place);
	}
	return *place;
}

struct track *tracks_add_to_thread(struct tracks *t, uint32_t thread, enum track_kind kind,
				   const char *name)
{
	const struct model *model = t->process->model;
	uint32_t tid = thread < model->threads.count ? model->threads.rows[thread].tid : 0;
	struct track *track;
	char *long_name;

	if (!t->writer->is_flat)
		return tracks_add(t, &(struct track){.kind = kind,
						     .parent = tracks_thread(t, thread),
						     .name = name});
	long_name = xt_asprintf("%s %u: %s", track_thread_name(model, thread), tid, name);
	track = tracks_add(t, &(struct track){.kind = kind, .parent = t->root, .name = long_name});
	free(long_name);
	return track;
}

struct track *tracks_device(struct tracks *t, uint32_t device)
{
	const struct model *model = t->process->model;
	bool is_simulated = !strcmp(model_meta(model, "gpu.simulated"), "1");
	char *short_name, *name;

	for (size_t i = 0; i < t->log.devices.count; i++)
		if (t->log.devices.rows[i]->number == device)
			return t->log.devices.rows[i];
	short_name = track_device_name(model, device);
	name = xt_asprintf("%s%s", short_name, is_simulated ? " [simulated]" : "");
	track_state_append(&t->log.devices,
			   tracks_add(t, &(struct track){.kind = TRACK_DEVICE,
							 .parent = t->root,
							 .name = name,
							 .number = device,
							 .order = t->root->order + 1}));
	free_all(short_name, name);
	return t->log.devices.rows[t->log.devices.count - 1];
}

static struct track *add_lane(struct tracks *t, uint32_t id, uint32_t lane)
{
	const struct stream *row = &t->process->model->streams.rows[id];
	char *name = track_stream_name(t->process->model, id, lane);
	struct track track = {.kind = TRACK_STREAM,
			      .parent = tracks_device(t, row->device),
			      .name = name,
			      .order = (uint64_t)id * LANES_MAX + lane,
			      .arg_count = TRACK_ARGS_MAX};
	struct track *added;

	arg_number(&track.args[0], ARG_DEVICE, row->device);
	arg_number(&track.args[1], ARG_CONTEXT, row->context);
	arg_number(&track.args[2], ARG_STREAM, row->stream);
	added = tracks_add(t, &track);
	free(name);
	return added;
}

/* Each piece of work without a lane has a track of its own, so one is declared again and again. */
static struct track *declare_again(struct tracks *t, struct track *track, uint32_t id)
{
	char *name = track_stream_name(t->process->model, id, LANES_MAX);

	declare(t, track, name);
	free(name);
	return track;
}

struct track *tracks_lane(struct tracks *t, const struct work *work)
{
	uint32_t id = work->stream < t->log.stream_count ? work->stream : 0;
	struct stream_tracks *stream = &t->log.streams[id];
	uint64_t end_ns = work->start_ns + work->duration_ns;
	int lane;

	if (end_ns < work->start_ns)
		end_ns = UINT64_MAX;
	stream->lanes.not_before = t->writer->has_ends;
	lane = lanes_place(&stream->lanes, work->start_ns, end_ns);
	if (lane == LANE_NONE)
		lane = t->writer->has_ends ? LANES_MAX : LANES_MAX - 1;
	if (!stream->list)
		stream->list = xt_calloc(LANES_MAX + 1, sizeof(*stream->list));
	if (!stream->list[lane])
		return stream->list[lane] = add_lane(t, id, (uint32_t)lane);
	return lane == LANES_MAX ? declare_again(t, stream->list[lane], id) : stream->list[lane];
}
