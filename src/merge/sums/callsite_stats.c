/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums by callsite.
 */
#include "merge/sums/callsite_stats.h"

#include <string.h>

#include "base/memory.h"
#include "log/base/call_result.h"
#include "log/base/compare.h"
#include "merge/base/labels.h"
#include "merge/sums/kernels.h"

#define BLOCKING_MIN_NS 3000  /* shorter calls do not block a thread, unless they wait */
#define SLOW_MIN_NS	20000 /* from here on, a slow call matters more than a wait */
#define RELAUNCH_MAX_NS 20000 /* time allowed for the thread to launch again */
#define STALL_MEANS_MAX 2     /* time allowed for the call, as a multiple of its mean */
#define BACK_TO_BACK_NS 20000 /* kernels this close together count as back to back */
#define LATENCY_NS	12000 /* from launch to start on an idle GPU; measured 6 to 10 us */
#define SWITCH_NS	5000  /* time the GPU may need between two pieces of work */
#define EARLY_NS	5000  /* work launched this long before counts as launched in time */

void callsites_init(struct callsites *callsites, const struct model *model,
		    const struct threads *threads)
{
	callsites->model = model;
	callsites->threads_info = threads;
	callsites->stream_count = smaller(model->streams.count, CALLSITES_STREAMS_MAX);
	callsites->by_stack = xt_calloc(model_stack_limit(model) + 1, sizeof(*callsites->by_stack));
	callsites->threads = xt_calloc(model->threads.count + 1, sizeof(*callsites->threads));
	callsites->streams = xt_calloc(callsites->stream_count + 1, sizeof(*callsites->streams));
	callsites->first_ns = UINT64_MAX;
	callsites->count = 1;
	xt_grow(callsites->list, callsites->capacity, 1);
}

void callsites_free(struct callsites *callsites)
{
	free_all(callsites->list, callsites->by_stack, callsites->visits.list, callsites->threads,
		 callsites->streams);
	*callsites = (struct callsites){0};
}

/* The callsite of a stack and an index in the model's apis, or CALLSITE_NONE. */
static uint32_t find(const struct callsites *callsites, uint32_t stack, uint16_t api)
{
	uint32_t s = callsites->by_stack[stack < model_stack_limit(callsites->model) ? stack : 0];

	while (s && callsites->list[s].api != api)
		s = callsites->list[s].next;
	return s;
}

uint32_t callsites_same(const struct callsites *callsites, const struct callsites *others,
			uint32_t of)
{
	const struct callsite *other = &others->list[of];

	return of ? find(callsites, other->stack, other->api) : CALLSITE_NONE;
}

static void init_callsite(struct callsites *callsites, uint32_t s, uint32_t stack, uint16_t api)
{
	const struct api *row = &callsites->model->apis.rows[api];
	const char *name = names_text(&callsites->model->names, row->name, NULL);
	uint32_t *first =
		&callsites->by_stack[stack < model_stack_limit(callsites->model) ? stack : 0];

	callsites->list[s] = (struct callsite){
		.stack = stack < model_stack_limit(callsites->model) ? stack : 0,
		.next = *first,
		.api = api,
		.class = (uint8_t)row->class,
		.waits = threads_waits(callsites->threads_info, api),
		.is_async = strstr(name, "Async") != NULL,
	};
	*first = s;
}

/* True if the stack may have one more callsite. */
static bool has_room(const struct callsites *callsites, uint32_t stack)
{
	uint32_t s = callsites->by_stack[stack < model_stack_limit(callsites->model) ? stack : 0],
		 count = 0;

	for (; s; s = callsites->list[s].next)
		count++;
	return count < CALLSITES_APIS_MAX && callsites->count < CALLSITES_MAX;
}

/* The callsite, added if needed; CALLSITE_NONE if there is no room. */
static uint32_t place(struct callsites *callsites, uint32_t stack, uint16_t api)
{
	uint32_t s = find(callsites, stack, api);

	if (s || !has_room(callsites, stack))
		return s;
	s = (uint32_t)callsites->count;
	xt_grow(callsites->list, callsites->capacity, callsites->count + 1);
	xt_grow(callsites->visits.list, callsites->visits.capacity,
		(callsites->count + 1) * CALLSITES_VISITS);
	init_callsite(callsites, s, stack, api);
	callsites->count++;
	return s;
}

/* True for classes that are recorded by default. Optional classes must not change the findings. */
static bool is_work(uint8_t class)
{
	static const uint32_t others =
		1u << XT_API_OTHER | 1u << XT_API_EVENT | 1u << XT_API_GRAPH | 1u << XT_API_LIFE;

	/* The value comes from a file and may be out of range. */
	return class >= XT_API_CLASSES || !(others >> class & 1);
}

static bool submits(uint8_t class)
{
	return class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH || class == XT_API_COPY ||
	       class == XT_API_SET;
}

static bool blocks_thread(const struct callsite *callsite, uint64_t self_ns)
{
	bool is_slow = callsite->class == XT_API_ALLOC || callsite->class == XT_API_FREE ||
		       callsite->class == XT_API_MODULE;

	return callsite->waits || (is_slow && self_ns >= BLOCKING_MIN_NS);
}

/* Compares with the thread's last visit to tell a loop from a series of calls. */
static void note_order(struct callsites *callsites, uint32_t s, struct thread_stats *thread,
		       uint32_t id)
{
	struct callsite_visit *visit =
		&callsites->visits.list[(size_t)s * CALLSITES_VISITS + id % CALLSITES_VISITS];
	struct callsite *callsite = &callsites->list[s];

	if (visit->is_known && visit->thread == id) {
		callsite->after_work_count += visit->launch_count != thread->launch_count;
		callsite->after_free_count += visit->free_count != thread->free_count;
	}
	if (callsite->class == XT_API_COPY)
		callsite->repeated_count += thread->last_class == XT_API_COPY;
	callsite->thread = id;
	*visit = (struct callsite_visit){id, true, thread->launch_count, thread->free_count};
}

/*
 * Remember the call that blocks the thread most. A call that is slow itself explains more than a
 * wait, whose length depends on the GPU's work.
 */
static void note_blocker(struct thread_stats *thread, const struct callsite *callsite, uint32_t s,
			 uint64_t self_ns)
{
	bool is_slow = !callsite->waits && self_ns >= SLOW_MIN_NS;

	if (!blocks_thread(callsite, self_ns) || (thread->blocker_is_slow && !is_slow))
		return;
	if (is_slow == thread->blocker_is_slow && thread->blocker && self_ns <= thread->blocker_ns)
		return;
	thread->blocker_is_slow = is_slow;
	thread->blocker_ns = self_ns;
	thread->blocker = s;
}

static void note_thread(struct thread_stats *thread, struct callsite *callsite, uint32_t s,
			uint64_t self_ns)
{
	if (callsite->class == XT_API_LAUNCH || callsite->class == XT_API_GRAPH_LAUNCH)
		thread->launch_count++;
	if (callsite->class == XT_API_FREE) {
		thread->free_count++;
		saturating_add(&thread->free_ns, self_ns);
	}
	if (callsite->class == XT_API_ALLOC) {
		saturating_add(&callsite->free_ns, callsite->count ? thread->free_ns : 0);
		thread->free_ns = 0;
	}
	if (is_work(callsite->class) && callsite->class != XT_API_SYNC)
		thread->last_class = callsite->class;
	if (submits(callsite->class))
		thread->blocker_ns = thread->blocker = thread->blocker_is_slow = 0;
	note_blocker(thread, callsite, s, self_ns);
}

static void note_result(struct callsite *callsite, uint64_t result)
{
	if (!xt_call_failed(callsite->class, result))
		return;
	callsite->failed_count++;
	callsite->last_result = result;
}

static void note_span(struct callsites *callsites, uint64_t start_ns, uint64_t end_ns)
{
	callsites->first_ns = smaller(callsites->first_ns, start_ns);
	callsites->last_ns = larger(callsites->last_ns, end_ns);
}

/*
 * Boyer-Moore majority vote over the NVTX ranges, weighted by time in calls, in work and idle
 * before it.
 */
static void weigh_range(struct callsite *callsite, uint32_t range, uint64_t ns)
{
	if (range == callsite->range) {
		saturating_add(&callsite->range_lead_ns, ns);
	} else if (ns >= callsite->range_lead_ns) {
		callsite->range_lead_ns = ns - callsite->range_lead_ns;
		callsite->range = range;
	} else {
		callsite->range_lead_ns -= ns;
	}
}

void callsites_add_call(struct callsites *callsites, struct launch *call, uint64_t self_ns,
			uint64_t result)
{
	uint32_t id = call->thread < callsites->model->threads.count ? call->thread : 0;
	struct thread_stats *thread = &callsites->threads[id];
	uint32_t s = place(callsites, call->stack, call->api);
	struct callsite *callsite = &callsites->list[s];

	if (!s)
		return;
	call->callsite = s;
	call->before = thread->blocker;
	note_order(callsites, s, thread, id);
	note_thread(thread, callsite, s, self_ns);
	callsite->count++;
	saturating_add(&callsite->time_ns, self_ns);
	weigh_range(callsite, call->range, self_ns);
	callsite->threads |= 1ull << id % CALLSITES_THREADS;
	note_result(callsite, result);
	if (call->enter_ns)
		note_span(callsites, call->enter_ns, call->enter_ns + self_ns);
}

static void add_copy(struct copy_stats *copies, const struct work *work)
{
	copies->count++;
	saturating_add(&copies->bytes, work->bytes);
	saturating_add(&copies->ns, work->duration_ns);
}

void callsites_add_copy(struct callsites *callsites, const struct work *work,
			const struct launch *launch)
{
	const struct copy_shape *shape = model_copy_shape(callsites->model, work->shape);
	bool from_host = shape->source == MEMORY_PAGEABLE || shape->source == MEMORY_PINNED;
	bool to_host = shape->destination == MEMORY_PAGEABLE || shape->destination == MEMORY_PINNED;
	bool is_pageable =
		shape->source == MEMORY_PAGEABLE || shape->destination == MEMORY_PAGEABLE;
	struct callsite *callsite = &callsites->list[launch ? launch->callsite : CALLSITE_NONE];

	if (!launch || !launch->callsite || work->graph_node)
		return;
	add_copy(&callsite->copies, work);
	if (from_host != to_host)
		add_copy(is_pageable ? &callsite->pageable : &callsite->pinned, work);
}

/* The row of a device. Devices beyond CALLSITES_DEVICES_MAX share the last one. */
static struct device_stats *device_of(struct callsites *callsites, uint32_t number)
{
	size_t d = 0;

	while (d < callsites->device_count && callsites->devices[d].device != number)
		d++;
	if (d == CALLSITES_DEVICES_MAX)
		return &callsites->devices[d - 1];
	if (d == callsites->device_count) {
		callsites->devices[d].device = number;
		callsites->devices[d].first_ns = UINT64_MAX;
		callsites->device_count++;
	}
	return &callsites->devices[d];
}

/*
 * Count a kernel that was launched in time and whose stream was free, but that started only when a
 * kernel of another stream ended.
 */
static void note_serialized(const struct device_stats *device, struct stream_stats *stream,
			    const struct stretch *stretch)
{
	uint64_t ready_ns = larger(stretch->work->enter_ns, stream->until_ns);
	uint64_t before_ns = device->kernel_union.until_ns;

	if (!stretch->work->has_call || !before_ns || stretch->start_ns < before_ns ||
	    stretch->start_ns - before_ns > BACK_TO_BACK_NS ||
	    device->last_stream == stretch->work->stream || ready_ns + EARLY_NS > before_ns)
		return;
	stream->serialized_count++;
	saturating_add(&stream->serialized_ns, before_ns - ready_ns);
}

static void note_kernel(struct callsites *callsites, struct device_stats *device,
			const struct stretch *stretch)
{
	uint32_t s = stretch->work->stream < callsites->stream_count
			     ? stretch->work->stream
			     : (uint32_t)callsites->stream_count;
	struct stream_stats *stream = &callsites->streams[s];

	note_serialized(device, stream, stretch);
	device->kernel_count++;
	saturating_add(&device->kernel_ns, stretch->end_ns - stretch->start_ns);
	if (stretch->end_ns > device->kernel_union.until_ns)
		device->last_stream = stretch->work->stream;
	device->kernel_union.ns += stretch_extends(&device->kernel_union.until_ns, stretch);
	stream->until_ns = larger(stream->until_ns, stretch->end_ns);
}

static void note_gap(struct device_idle *idle, uint64_t ns)
{
	uint64_t *shortest = idle->longest_ns;

	idle->gap_count++;
	saturating_add(&idle->gap_ns, ns);
	for (int i = 1; i < DEVICE_LONGEST_GAPS; i++)
		if (idle->longest_ns[i] < *shortest)
			shortest = &idle->longest_ns[i];
	*shortest = larger(*shortest, ns);
}

/* Adds idle time that a call caused. stall_idle_ns leaves out the longest gap. */
static void add_stall(struct callsite *callsite, enum idle_class class, uint64_t ns)
{
	uint64_t *longest_ns = &callsite->stall_longest_ns[class];

	saturating_add(&callsite->stall_ns, ns);
	saturating_add(&callsite->stall_idle_ns[class], smaller(ns, *longest_ns));
	*longest_ns = larger(*longest_ns, ns);
}

/* Causes of idle time around a blocking call that does not wait for the GPU, or after a wait. */
static const enum idle_class late_classes[] = {IDLE_ALLOCATING, IDLE_LOADING, IDLE_LAUNCH_LATE};

/* Moves up to most_ns of the late classes to the callsite. Returns whether there was any. */
static bool take_late(struct callsite *callsite, uint64_t most_ns, uint64_t left_ns[IDLE_CLASSES])
{
	uint64_t taken_ns = 0;

	for (size_t i = 0; i < sizeof(late_classes) / sizeof(late_classes[0]); i++) {
		uint64_t ns = smaller(left_ns[late_classes[i]], most_ns - taken_ns);

		add_stall(callsite, late_classes[i], ns);
		left_ns[late_classes[i]] -= ns;
		taken_ns += ns;
	}
	return taken_ns;
}

/* Moves the part of a gap that the preceding blocking call caused from left_ns to that call. */
static void take_stall(struct callsites *callsites, const struct stretch *stretch,
		       uint64_t left_ns[IDLE_CLASSES])
{
	struct callsite *callsite = &callsites->list[stretch->call.before];
	uint64_t most_ns;

	if (callsite->waits) {
		bool is_in_time = stretch->work->enter_ns <= stretch->gap.from_ns;
		uint64_t copy_ns = is_in_time ? 0 : left_ns[IDLE_ON_COPY];

		if (!left_ns[IDLE_CPU_IN_SYNC] && !copy_ns)
			return;
		add_stall(callsite, IDLE_CPU_IN_SYNC, left_ns[IDLE_CPU_IN_SYNC]);
		add_stall(callsite, IDLE_ON_COPY, copy_ns);
		left_ns[IDLE_CPU_IN_SYNC] = 0;
		left_ns[IDLE_ON_COPY] -= copy_ns;
		take_late(callsite, UINT64_MAX, left_ns);
		callsite->stall_count++;
		return;
	}
	most_ns = RELAUNCH_MAX_NS +
		  STALL_MEANS_MAX * callsite->time_ns / (callsite->count ? callsite->count : 1);
	callsite->stall_count += take_late(callsite, most_ns, left_ns);
}

/* Shorter gaps are the GPU's own switching time, which a program cannot avoid. */
static const uint64_t min_gap_ns[IDLE_CLASSES] = {
	[IDLE_LAUNCH_LATE] = 1,	  [IDLE_CPU_IN_SYNC] = 1,	  [IDLE_ALLOCATING] = 1,
	[IDLE_LOADING] = 1,	  [IDLE_ON_COPY] = SWITCH_NS,	  [IDLE_ON_STREAM] = SWITCH_NS,
	[IDLE_NOT_SUBMITTED] = 1, [IDLE_NOT_STARTED] = SWITCH_NS, [IDLE_CALL_UNKNOWN] = 1,
};

static void note_longest(struct device_stats *device, const struct stretch *stretch)
{
	uint64_t ns = stretch->start_ns - stretch->gap.from_ns;
	enum idle_class most = 0;

	for (int class = 0; class < IDLE_CLASSES; class ++) {
		saturating_add(&device->idle[class].ns, stretch->gap.idle_ns[class]);
		if (stretch->gap.idle_ns[class] > stretch->gap.idle_ns[most])
			most = (enum idle_class) class;
	}
	if (ns > device->longest_gap.ns)
		device->longest_gap = (struct longest_gap){ns, stretch->gap.from_ns, most,
							   stretch->call.callsite};
}

static void note_idle(struct callsites *callsites, struct device_stats *device,
		      const struct stretch *stretch)
{
	uint64_t left_ns[IDLE_CLASSES];
	struct callsite *callsite = &callsites->list[stretch->call.callsite];
	/* Launching a graph takes long, and its first nodes run meanwhile. */
	uint64_t latency_ns = LATENCY_NS + (uint64_t)stretch->call.took_ns;

	memcpy(left_ns, stretch->gap.idle_ns, sizeof(left_ns));
	/*
	 * The work started as soon as it could: the GPU was idle while its launch was on the way.
	 */
	if (stretch->work->has_call && stretch->start_ns - stretch->work->enter_ns <= latency_ns) {
		left_ns[IDLE_LAUNCH_LATE] += left_ns[IDLE_NOT_STARTED] + left_ns[IDLE_ON_STREAM];
		left_ns[IDLE_NOT_STARTED] = left_ns[IDLE_ON_STREAM] = 0;
	}
	/* A blocking call before a graph launch does not delay the later nodes of the graph. */
	if (stretch->work->has_call && stretch->call.before &&
	    stretch->gap.from_ns <= stretch->work->enter_ns + LATENCY_NS)
		take_stall(callsites, stretch, left_ns);
	for (int class = 0; class < IDLE_CLASSES; class ++) {
		if (left_ns[class] < min_gap_ns[class])
			continue;
		note_gap(&device->idle[class], left_ns[class]);
		saturating_add(&callsite->idle_ns[class], left_ns[class]);
		weigh_range(callsite, stretch->owner->range, left_ns[class]);
		callsite->idle_count[class]++;
	}
	saturating_add(&callsite->late_ns, smaller(left_ns[IDLE_LAUNCH_LATE], LAUNCH_DELAY_MAX_NS));
}

void callsites_add_work(struct callsites *callsites, const struct stretch *stretch)
{
	struct device_stats *device = device_of(callsites, stretch->device);

	callsites->list[stretch->call.callsite].stream = stretch->work->stream;
	if (!device->last_ns)
		device->paused_before_ns = stretch->paused_ns;
	device->paused_ns = stretch->paused_ns - device->paused_before_ns;
	if (stretch->start_ns < device->first_ns) {
		device->first_ns = stretch->start_ns;
		device->first_callsite = stretch->call.callsite;
	}
	/* A part of a run may begin with a gap, because the work before it was left out. */
	if (stretch->gap.exists && stretch->gap.from_ns < device->first_ns)
		device->first_ns = stretch->gap.from_ns;
	device->last_ns = larger(device->last_ns, stretch->end_ns);
	if (stretch->work->has_call)
		weigh_range(&callsites->list[stretch->call.callsite], stretch->owner->range,
			    stretch->end_ns - stretch->start_ns);
	if (stretch->gap.exists) {
		note_longest(device, stretch);
		note_idle(callsites, device, stretch);
	}
	device->work_union.ns += stretch_extends(&device->work_union.until_ns, stretch);
	if (stretch->is_kernel)
		device->active_union.ns += stretch_extends(&device->active_union.until_ns, stretch);
	if (stretch->is_kernel && !stretch->is_collective)
		note_kernel(callsites, device, stretch);
	note_span(callsites, stretch->start_ns, stretch->end_ns);
}

uint64_t device_idle_ns(const struct device_idle *idle)
{
	uint64_t longest_ns = 0;

	for (int i = 0; i < DEVICE_LONGEST_GAPS; i++)
		saturating_add(&longest_ns, idle->longest_ns[i]);
	return idle->gap_ns - longest_ns; /* not negative: if it saturates, so does gap_ns */
}

uint64_t device_span_ns(const struct device_stats *device)
{
	return device->last_ns - device->first_ns - device->paused_ns;
}

uint64_t callsites_active_ns(const struct callsites *callsites)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0, away_ns = UINT64_MAX, paused_ns = 0;

	for (size_t d = 0; d < callsites->device_count; d++) {
		const struct device_stats *device = &callsites->devices[d];
		const struct device_idle *idle = &device->idle[IDLE_NOT_SUBMITTED];

		first_ns = smaller(device->first_ns, first_ns);
		last_ns = larger(device->last_ns, last_ns);
		away_ns = smaller(idle->gap_ns - device_idle_ns(idle), away_ns);
		paused_ns = larger(device->paused_ns, paused_ns);
	}
	saturating_add(&away_ns, paused_ns);
	if (last_ns > first_ns && last_ns - first_ns > away_ns)
		return last_ns - first_ns - away_ns;
	return callsites->last_ns - callsites->first_ns;
}

/* Adds the kernels of one owner to its callsite. */
static void add_kernels(struct callsites *callsites, struct callsite *callsite,
			const struct total *total)
{
	uint64_t kernel_ns = total->weights[WEIGHT_GPU_TIME];
	uint64_t alone_ns = total->weights[WEIGHT_GPU_EXCLUSIVE];
	uint64_t count = total->weights[WEIGHT_COUNT];
	double fill = shape_fill(callsites->model, total->owner.what, total->owner.stream);
	uint64_t used_ns = shape_share(kernel_ns, fill);

	if (!callsite->kernel_count)
		callsite->first_stream = total->owner.stream;
	callsite->has_streams |= callsite->first_stream != total->owner.stream;
	saturating_add(&callsite->kernel_count, count);
	saturating_add(&callsite->kernel_ns, kernel_ns);
	if (!shape_is_small(fill) || !count || kernel_ns / count < SHAPE_SHORT_NS)
		return;
	saturating_add(&callsite->small_count, count);
	saturating_add(&callsite->small_ns, alone_ns);
	saturating_add(&callsite->small_loss_ns, alone_ns > used_ns ? alone_ns - used_ns : 0);
	if (kernel_ns <= callsite->small_shape_ns)
		return;
	callsite->small_shape = total->owner.what;
	callsite->small_shape_ns = kernel_ns;
}

/* Adds them to their stream, separately if the callsite uses several streams. */
static void add_stream(struct callsites *callsites, uint32_t s, const struct total *total)
{
	uint32_t number = total->owner.stream < callsites->stream_count
				  ? total->owner.stream
				  : (uint32_t)callsites->stream_count;
	struct stream_stats *stream = &callsites->streams[number];
	uint64_t kernel_ns = total->weights[WEIGHT_GPU_TIME];
	double fill = shape_fill(callsites->model, total->owner.what, total->owner.stream);

	if (kernel_ns > stream->top_ns) {
		stream->top_callsite = s;
		stream->top_ns = kernel_ns;
	}
	if (!callsites->list[s].has_streams)
		return;
	saturating_add(&stream->shared_count, total->weights[WEIGHT_COUNT]);
	saturating_add(&stream->shared_ns, kernel_ns);
	saturating_add(&stream->shared_fill_ns, shape_share(kernel_ns, fill));
}

/* Collectives wait for other GPUs, so rules about kernels ignore them. */
static bool is_kernel(const struct callsites *callsites, const struct owner *owner)
{
	const struct model *model = callsites->model;

	return owner->leaf == LEAF_KERNEL && (owner->what >= model->shapes.count ||
					      !model->shapes.rows[owner->what].is_collective);
}

/* The callsite that launched kernels directly; CALLSITE_NONE for graph nodes. */
static uint32_t callsite_of(const struct callsites *callsites, const struct total *total)
{
	const struct owner *owner = &total->owner;

	if (!is_kernel(callsites, owner) || !owner_is_direct(owner))
		return CALLSITE_NONE;
	return find(callsites, owner->stack, (uint16_t)owner->api);
}

/* Adds how much of the device the kernels fill, whatever launched them. */
static void fill_device(struct callsites *callsites, const struct total *total)
{
	uint32_t number = total->owner.stream;
	uint32_t device = model_device(callsites->model, number);
	double fill = shape_fill(callsites->model, total->owner.what, number);

	for (size_t d = 0; d < callsites->device_count; d++)
		if (callsites->devices[d].device == device)
			saturating_add(&callsites->devices[d].fill_ns,
				       shape_share(total->weights[WEIGHT_GPU_TIME], fill));
}

void callsites_finish(struct callsites *callsites, const struct aggregate *totals, uint32_t marks)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t t = 0; t < totals->count; t++) {
			const struct total *total = &totals->entries[t];
			uint32_t s = callsite_of(callsites, total);

			if ((total->owner.marks & marks) != marks)
				continue;
			if (!pass && is_kernel(callsites, &total->owner))
				fill_device(callsites, total);
			if (!pass && s)
				add_kernels(callsites, &callsites->list[s], total);
			/* Needs to know which callsites use several streams. */
			if (pass && s)
				add_stream(callsites, s, total);
		}
}
