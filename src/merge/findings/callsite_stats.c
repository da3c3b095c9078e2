/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums by call site.
 */
#include "merge/findings/callsite_stats.h"

#include <stdlib.h>
#include <string.h>

#include "merge/base/grow.h"
#include "merge/base/labels.h"
#include "merge/sums/threads.h"

#define HOLDS_FROM_NS 3000  /* a call that takes less holds nobody up, unless it waits */
#define SLOW_FROM_NS  20000 /* … and from here on more than a wait does */
#define HELD_MORE_NS  20000 /* what the thread may need until it launches again … */
#define HELD_MEANS    2	    /* … and how much longer than usual the call may have taken */
#define BEHIND_NS     20000 /* kernels that follow each other so closely do so at once */
#define LATENCY_NS                                                                                 \
	12000	      /* from a launch to its start, on a GPU that has nothing to do: 6 to 10 us */
#define NEXT_NS	 5000 /* what the GPU may need from one piece of work to the next */
#define EARLY_NS 5000 /* what was launched so long before was there in time */

/* Results that are answers: to whether something is done, or there. */
#define NOT_READY 600
#define NOT_FOUND 500

int sites_init(struct sites *sites, const struct model *model, const struct threads *threads)
{
	sites->model = model;
	sites->threads_known = threads;
	sites->stack_count = model->stacks.count;
	sites->thread_count = model->threads.count;
	sites->stream_count =
		model->streams.count < SITES_STREAMS_MAX ? model->streams.count : SITES_STREAMS_MAX;
	sites->by_stack = calloc(sites->stack_count + 1, sizeof(*sites->by_stack));
	sites->threads = calloc(sites->thread_count + 1, sizeof(*sites->threads));
	sites->streams = calloc(sites->stream_count + 1, sizeof(*sites->streams));
	sites->first_ns = UINT64_MAX;
	sites->count = 1;
	if (!sites->by_stack || !sites->threads || !sites->streams ||
	    grow(&sites->list, &sites->capacity, 1, sizeof(*sites->list)) < 0)
		return -ENOMEM;
	return 0;
}

void sites_free(struct sites *sites)
{
	free(sites->list);
	free(sites->by_stack);
	free(sites->turns);
	free(sites->threads);
	free(sites->streams);
	*sites = (struct sites){0};
}

uint32_t sites_find(const struct sites *sites, uint32_t stack, uint16_t api)
{
	uint32_t s = sites->by_stack[stack < sites->stack_count ? stack : 0];

	while (s && sites->list[s].api != api)
		s = sites->list[s].next;
	return s;
}

static void make(struct sites *sites, uint32_t s, uint32_t stack, uint16_t api)
{
	const struct api *row = &sites->model->apis.rows[api];
	const char *name = names_text(&sites->model->names, row->name, NULL);
	uint32_t *first = &sites->by_stack[stack < sites->stack_count ? stack : 0];

	sites->list[s] = (struct site){
		.stack = stack < sites->stack_count ? stack : 0,
		.next = *first,
		.api = api,
		.class = (uint8_t)row->class,
		.waits = threads_waits(sites->threads_known, api),
		.is_async = strstr(name, "Async") != NULL,
	};
	*first = s;
}

/* Is there room for one more site of that stack? */
static bool has_room(const struct sites *sites, uint32_t stack)
{
	uint32_t s = sites->by_stack[stack < sites->stack_count ? stack : 0], count = 0;

	for (; s; s = sites->list[s].next)
		count++;
	return count < SITES_APIS_MAX && sites->count < SITES_MAX;
}

/* The site, made if need be; SITE_NONE if there is no room for it. */
static uint32_t place(struct sites *sites, uint32_t stack, uint16_t api)
{
	uint32_t s = sites_find(sites, stack, api);

	if (s || !has_room(sites, stack))
		return s;
	s = (uint32_t)sites->count;
	if (grow(&sites->list, &sites->capacity, sites->count + 1, sizeof(*sites->list)) < 0 ||
	    grow(&sites->turns, &sites->turn_capacity, (sites->count + 1) * SITES_TURNS,
		 sizeof(*sites->turns)) < 0) {
		sites->error = -ENOMEM;
		return SITE_NONE;
	}
	make(sites, s, stack, api);
	sites->count++;
	return s;
}

/* Is it recorded by default? What is recorded beyond that changes nothing here. */
static bool is_work(uint8_t class)
{
	static const uint32_t others =
		1u << XT_API_OTHER | 1u << XT_API_EVENT | 1u << XT_API_GRAPH | 1u << XT_API_LIFE;

	/* (A log may say anything.) */
	return class >= XT_API_CLASSES || !(others >> class & 1);
}

static bool submits(uint8_t class)
{
	return class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH || class == XT_API_COPY ||
	       class == XT_API_SET;
}

static bool holds(const struct site *site, uint64_t own_ns)
{
	bool is_slow = site->class == XT_API_ALLOC || site->class == XT_API_FREE ||
		       site->class == XT_API_MODULE;

	return site->waits || (is_slow && own_ns >= HOLDS_FROM_NS);
}

/* What the thread did since the last call of the site tells a loop from a row of calls. */
static void note_order(struct sites *sites, uint32_t s, struct site_thread *thread, uint32_t id)
{
	struct site_turn *turn = &sites->turns[(size_t)s * SITES_TURNS + id % SITES_TURNS];
	struct site *site = &sites->list[s];

	if (turn->is_known && turn->thread == id) {
		site->after_work_count += turn->launch_count != thread->launch_count;
		site->after_free_count += turn->free_count != thread->free_count;
	}
	if (site->class == XT_API_COPY)
		site->repeated_count += thread->last_class == XT_API_COPY;
	site->thread = id;
	*turn = (struct site_turn){id, true, thread->launch_count, thread->free_count};
}

/* Which call holds the thread up most. One that is slow by itself explains more than a wait, which
 * lasts as long as the GPU has work. */
static void note_hold(struct site_thread *thread, const struct site *site, uint32_t s,
		      uint64_t own_ns)
{
	bool is_slow = !site->waits && own_ns >= SLOW_FROM_NS;

	if (!holds(site, own_ns) || (thread->held_slowly && !is_slow))
		return;
	if (is_slow == thread->held_slowly && thread->held_site && own_ns <= thread->held_ns)
		return;
	thread->held_slowly = is_slow;
	thread->held_ns = own_ns;
	thread->held_site = s;
}

static void note_thread(struct site_thread *thread, struct site *site, uint32_t s, uint64_t own_ns)
{
	if (site->class == XT_API_LAUNCH || site->class == XT_API_GRAPH_LAUNCH)
		thread->launch_count++;
	if (site->class == XT_API_FREE) {
		thread->free_count++;
		sites_add(&thread->free_ns, own_ns);
	}
	if (site->class == XT_API_ALLOC) {
		sites_add(&site->free_ns, site->count ? thread->free_ns : 0);
		thread->free_ns = 0;
	}
	if (is_work(site->class) && site->class != XT_API_SYNC)
		thread->last_class = site->class;
	if (submits(site->class))
		thread->held_ns = thread->held_site = thread->held_slowly = 0;
	note_hold(thread, site, s, own_ns);
}

static void note_result(struct site *site, uint64_t result)
{
	if (!result || result == NOT_READY || (result == NOT_FOUND && site->class == XT_API_MODULE))
		return;
	site->failed_count++;
	site->last_result = result;
}

static void note_span(struct sites *sites, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns < sites->first_ns)
		sites->first_ns = start_ns;
	if (end_ns > sites->last_ns)
		sites->last_ns = end_ns;
}

/* Of time in calls, in work and before it. A majority is found by counting others against it. */
static void weigh_range(struct site *site, uint32_t range, uint64_t ns)
{
	if (range == site->range) {
		sites_add(&site->range_lead_ns, ns);
	} else if (ns >= site->range_lead_ns) {
		site->range_lead_ns = ns - site->range_lead_ns;
		site->range = range;
	} else {
		site->range_lead_ns -= ns;
	}
}

void sites_call(struct sites *sites, struct launch *call, uint64_t own_ns, uint64_t result)
{
	uint32_t id = call->thread < sites->thread_count ? call->thread : 0;
	struct site_thread *thread = &sites->threads[id];
	uint32_t s = place(sites, call->stack, call->api);
	struct site *site = &sites->list[s];

	if (!s)
		return;
	call->site = s;
	call->before = thread->held_site;
	if (site->class == XT_API_GRAPH_LAUNCH)
		call->took_ns = own_ns < UINT32_MAX ? (uint32_t)own_ns : UINT32_MAX;
	note_order(sites, s, thread, id);
	note_thread(thread, site, s, own_ns);
	site->count++;
	sites_add(&site->time_ns, own_ns);
	weigh_range(site, call->range, own_ns);
	site->threads |= 1ull << id % SITES_THREADS;
	note_result(site, result);
	if (call->enter_ns)
		note_span(sites, call->enter_ns, call->enter_ns + own_ns);
}

static void add_copy(struct site_copies *copies, const struct work *work)
{
	copies->count++;
	sites_add(&copies->bytes, work->bytes);
	sites_add(&copies->ns, work->duration_ns);
}

void sites_copy(struct sites *sites, const struct work *work, const struct launch *launch)
{
	const struct model *model = sites->model;
	const struct copy_shape *shape =
		&model->copy_shapes.rows[work->shape < model->copy_shapes.count ? work->shape : 0];
	bool from_host = shape->source == MEMORY_PAGEABLE || shape->source == MEMORY_PINNED;
	bool to_host = shape->destination == MEMORY_PAGEABLE || shape->destination == MEMORY_PINNED;
	bool is_pageable =
		shape->source == MEMORY_PAGEABLE || shape->destination == MEMORY_PAGEABLE;
	struct site *site = &sites->list[launch ? launch->site : SITE_NONE];

	if (!launch || !launch->site || work->graph_node)
		return;
	add_copy(&site->copies, work);
	if (from_host != to_host)
		add_copy(is_pageable ? &site->pageable : &site->pinned, work);
}

/* The row of a device; those beyond SITES_DEVICES_MAX have the last one. */
static struct site_device *device_of(struct sites *sites, uint32_t number)
{
	size_t d = 0;

	while (d < sites->device_count && sites->devices[d].device != number)
		d++;
	if (d == SITES_DEVICES_MAX)
		return &sites->devices[d - 1];
	if (d == sites->device_count) {
		sites->devices[d].device = number;
		sites->devices[d].first_ns = UINT64_MAX;
		sites->device_count++;
	}
	return &sites->devices[d];
}

/* What of it is later than all before. */
static uint64_t later(uint64_t *until_ns, const struct stretch *stretch)
{
	uint64_t from_ns = stretch->start_ns > *until_ns ? stretch->start_ns : *until_ns;

	if (stretch->end_ns <= from_ns)
		return 0;
	*until_ns = stretch->end_ns;
	return stretch->end_ns - from_ns;
}

/* A kernel that had been launched in time and whose stream was free, and which began only when one in
 * another stream had ended. */
static void note_held(const struct site_device *device, struct site_stream *stream,
		      const struct stretch *stretch)
{
	uint64_t ready_ns =
		stretch->enter_ns > stream->until_ns ? stretch->enter_ns : stream->until_ns;
	uint64_t before_ns = device->kernels_until_ns;

	if (!stretch->has_call || !before_ns || stretch->start_ns < before_ns ||
	    stretch->start_ns - before_ns > BEHIND_NS || device->last_stream == stretch->stream ||
	    ready_ns + EARLY_NS > before_ns)
		return;
	stream->held_count++;
	sites_add(&stream->held_ns, before_ns - ready_ns);
}

static void note_kernel(struct sites *sites, struct site_device *device,
			const struct stretch *stretch)
{
	uint32_t s = stretch->stream < sites->stream_count ? stretch->stream
							   : (uint32_t)sites->stream_count;
	struct site_stream *stream = &sites->streams[s];

	note_held(device, stream, stretch);
	device->kernel_count++;
	sites_add(&device->kernel_ns, stretch->end_ns - stretch->start_ns);
	if (stretch->end_ns > device->kernels_until_ns)
		device->last_stream = stretch->stream;
	device->kernel_union_ns += later(&device->kernels_until_ns, stretch);
	if (stretch->end_ns > stream->until_ns)
		stream->until_ns = stretch->end_ns;
}

static void note_gap(struct site_device *device, enum idle_class class, uint64_t ns)
{
	uint64_t *shortest = device->longest_ns[class];

	device->gap_count[class]++;
	sites_add(&device->gap_ns[class], ns);
	for (int i = 1; i < SITES_LONGEST_GAPS; i++)
		if (device->longest_ns[class][i] < *shortest)
			shortest = &device->longest_ns[class][i];
	if (ns > *shortest)
		*shortest = ns;
}

/* What a call held up, but for the longest time. */
static void hold(struct site *site, enum idle_class class, uint64_t ns)
{
	uint64_t *longest_ns = &site->held_longest_ns[class];

	sites_add(&site->held_ns, ns);
	sites_add(&site->held_idle_ns[class], ns < *longest_ns ? ns : *longest_ns);
	if (ns > *longest_ns)
		*longest_ns = ns;
}

/* What of a gap is due to the call that had held the thread up before it launched again. */
static void take_held(struct sites *sites, const struct stretch *stretch,
		      uint64_t left_ns[IDLE_CLASSES])
{
	struct site *site = &sites->list[stretch->before];
	uint64_t late_ns = left_ns[IDLE_LAUNCH_LATE], most_ns;

	if (site->waits) {
		bool is_in_time = stretch->enter_ns <= stretch->gap_from_ns;
		uint64_t copy_ns = is_in_time ? 0 : left_ns[IDLE_ON_COPY];

		if (!left_ns[IDLE_CPU_IN_SYNC] && !copy_ns)
			return;
		hold(site, IDLE_CPU_IN_SYNC, left_ns[IDLE_CPU_IN_SYNC]);
		hold(site, IDLE_ON_COPY, copy_ns);
		hold(site, IDLE_LAUNCH_LATE, late_ns);
		left_ns[IDLE_CPU_IN_SYNC] = 0;
		left_ns[IDLE_ON_COPY] -= copy_ns;
		left_ns[IDLE_LAUNCH_LATE] = 0;
		site->held_count++;
		return;
	}
	most_ns = HELD_MORE_NS + HELD_MEANS * site->time_ns / (site->count ? site->count : 1);
	if (!late_ns)
		return;
	if (late_ns > most_ns)
		late_ns = most_ns;
	left_ns[IDLE_LAUNCH_LATE] -= late_ns;
	hold(site, IDLE_LAUNCH_LATE, late_ns);
	site->held_count++;
}

/* What the GPU needs from one piece of work to the next is nobody's to win. */
static const uint64_t least_ns[IDLE_CLASSES] = {
	[IDLE_LAUNCH_LATE] = 1,	    [IDLE_CPU_IN_SYNC] = 1,   [IDLE_ON_COPY] = NEXT_NS,
	[IDLE_ON_STREAM] = NEXT_NS, [IDLE_NOT_SUBMITTED] = 1, [IDLE_NOT_STARTED] = NEXT_NS,
	[IDLE_CALL_UNKNOWN] = 1,
};

static void note_idle(struct sites *sites, struct site_device *device,
		      const struct stretch *stretch)
{
	uint64_t left_ns[IDLE_CLASSES];
	struct site *site = &sites->list[stretch->site];
	/* (Graphs are launched for long, and their first nodes run meanwhile.) */
	uint64_t latency_ns = LATENCY_NS + (uint64_t)stretch->took_ns;

	memcpy(left_ns, stretch->idle_ns, sizeof(left_ns));
	/* It began as soon as it could: the GPU had nothing, although a launch was on its way. */
	if (stretch->has_call && stretch->start_ns - stretch->enter_ns <= latency_ns) {
		left_ns[IDLE_LAUNCH_LATE] += left_ns[IDLE_NOT_STARTED] + left_ns[IDLE_ON_STREAM];
		left_ns[IDLE_NOT_STARTED] = left_ns[IDLE_ON_STREAM] = 0;
	}
	/* (What held up a launch did not hold up the later nodes of its graph.) */
	if (stretch->has_call && stretch->before &&
	    stretch->gap_from_ns <= stretch->enter_ns + LATENCY_NS)
		take_held(sites, stretch, left_ns);
	for (int class = 0; class < IDLE_CLASSES; class ++) {
		if (left_ns[class] < least_ns[class])
			continue;
		note_gap(device, (enum idle_class) class, left_ns[class]);
		sites_add(&site->idle_ns[class], left_ns[class]);
		weigh_range(site, stretch->owner->range, left_ns[class]);
		site->idle_count[class]++;
	}
	sites_add(&site->late_ns, left_ns[IDLE_LAUNCH_LATE] < SITES_LATE_MOST_NS
					  ? left_ns[IDLE_LAUNCH_LATE]
					  : SITES_LATE_MOST_NS);
}

void sites_ran(struct sites *sites, const struct stretch *stretch)
{
	struct site_device *device = device_of(sites, stretch->device);

	sites->list[stretch->site].stream = stretch->stream;
	if (stretch->start_ns < device->first_ns)
		device->first_ns = stretch->start_ns;
	if (stretch->end_ns > device->last_ns)
		device->last_ns = stretch->end_ns;
	if (stretch->has_call)
		weigh_range(&sites->list[stretch->site], stretch->owner->range,
			    stretch->end_ns - stretch->start_ns);
	if (stretch->has_gap)
		note_idle(sites, device, stretch);
	device->work_union_ns += later(&device->work_until_ns, stretch);
	if (stretch->is_kernel)
		device->active_union_ns += later(&device->active_until_ns, stretch);
	if (stretch->is_kernel && !stretch->is_collective)
		note_kernel(sites, device, stretch);
	note_span(sites, stretch->start_ns, stretch->end_ns);
}
