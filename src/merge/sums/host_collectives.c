/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/host_collectives.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_abi/cupti_abi.h"
#include "log/base/grow.h"
#include "merge/reading.h"
#include "merge/sums/rank_collector.h"
#include "merge/symbolize/host_stacks.h"

#define QUEUE_MAX (1u << 17) /* work behind a collective; then the collective is given up */
/*
 * Copies of a thread on the same stream are of one collective, unless so many others began. PyTorch
 * takes streams from a pool of 32 in turn.
 */
#define SAME_STREAM_MAX 8

struct queued_work {
	struct stretch stretch;
	struct owner owner;
	struct gap_part *gap; /* parts of the gap before it; NULL: none */
	size_t gap_count;
	struct host_collective host; /* if stretch.host is set: it points here once passed */
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Whether a copy moves data in a direction of CUPTI's copy kinds. */
static bool is_copy(const struct stretch *stretch, uint32_t kind)
{
	return stretch->owner->leaf == LEAF_COPY && stretch->owner->what == kind &&
	       stretch->has_call;
}

/* Takes the parts of the gap from the collector, which would give them to the next work passed. */
static int keep_gap(struct queued_work *work, struct rank_collector *collector)
{
	size_t bytes;

	if (!collector || !collector->gap_count)
		return 0;
	bytes = collector->gap_count * sizeof(*work->gap);
	work->gap = malloc(bytes);
	if (!work->gap)
		return -ENOMEM;
	memcpy(work->gap, collector->gap, bytes);
	work->gap_count = collector->gap_count;
	collector->gap_count = 0;
	return 0;
}

/* Makes room at a place of the queue. Returns NULL if out of memory. */
static struct queued_work *insert(struct host_collectives *host, size_t at)
{
	if (host->first > host->count / 2) {
		memmove(host->queue, host->queue + host->first,
			(host->count - host->first) * sizeof(*host->queue));
		host->count -= host->first;
		at -= host->first;
		host->first = 0;
	}
	if (grow(&host->queue, &host->capacity, host->count + 1, sizeof(*host->queue)) < 0)
		return NULL;
	memmove(host->queue + at + 1, host->queue + at, (host->count - at) * sizeof(*host->queue));
	host->count++;
	host->queue[at] = (struct queued_work){0};
	return &host->queue[at];
}

static int append(struct host_collectives *host, const struct stretch *stretch,
		  struct rank_collector *collector)
{
	struct queued_work *work = insert(host, host->count);

	if (!work)
		return -ENOMEM;
	work->stretch = *stretch;
	work->owner = *stretch->owner;
	return keep_gap(work, collector);
}

static void add_span(struct host_collectives *host, const struct queued_work *work)
{
	if (host->span_count == HOST_SPANS_MAX)
		memmove(host->spans, host->spans + 1, --host->span_count * sizeof(*host->spans));
	host->spans[host->span_count++] =
		(struct host_span){work->stretch.start_ns, work->stretch.end_ns};
}

/* Returns when the last collective ended that some work after a gap waited for. */
static uint64_t waited_until(const struct host_collectives *host, const struct stretch *work)
{
	uint64_t until_ns = work->gap_from_ns;

	/* Work that was launched before the end of a collective did not wait for it. */
	for (size_t s = 0; s < host->span_count && work->has_call; s++)
		if (host->spans[s].until_ns <= work->enter_ns)
			until_ns = later(until_ns, host->spans[s].until_ns);
	return until_ns;
}

/* Returns how long collectives ran within a time. */
static uint64_t spans_within(const struct host_collectives *host, uint64_t from_ns,
			     uint64_t until_ns)
{
	uint64_t sum_ns = 0;

	for (size_t s = 0; s < host->span_count; s++) {
		const struct host_span *span = &host->spans[s];
		uint64_t begin_ns = later(span->from_ns, from_ns);
		uint64_t end_ns = span->until_ns < until_ns ? span->until_ns : until_ns;

		if (end_ns <= begin_ns)
			continue;
		sum_ns += end_ns - begin_ns;
		from_ns = end_ns;
	}
	return sum_ns;
}

/* Passes work on, with the part of the gap in which no collective ran. */
static int pass(struct reading *reading, struct queued_work *work)
{
	struct host_collectives *host = &reading->host_collectives;
	struct stretch *stretch = &work->stretch;
	uint64_t gap_ns = stretch->start_ns - stretch->gap_from_ns, left_ns = gap_ns;

	stretch->owner = &work->owner;
	if (stretch->host) {
		stretch->host = &work->host;
		add_span(host, work);
	} else if (stretch->has_gap) {
		uint64_t until_ns = waited_until(host, stretch);

		left_ns -= spans_within(host, stretch->gap_from_ns, until_ns);
		stretch->gap_from_ns = until_ns;
		stretch->has_gap = left_ns > 0;
	}
	for (size_t g = 0; g < work->gap_count; g++) {
		uint64_t ns = work->gap[g].ns;

		if (gap_ns && left_ns < gap_ns)
			ns = (uint64_t)((double)ns * (double)left_ns / (double)gap_ns);
		rank_log_add_idle(reading, work->gap[g].place, ns);
	}
	free(work->gap);
	work->gap = NULL;
	return rank_log_add(reading, stretch);
}

/* Passes the work on that began before all collectives that are open. */
static int pass_complete(struct reading *reading)
{
	struct host_collectives *host = &reading->host_collectives;
	uint64_t until_ns = UINT64_MAX;
	int error = 0;

	for (size_t o = 0; o < host->open_count; o++)
		if (host->open[o].copy.end_ns < until_ns)
			until_ns = host->open[o].copy.end_ns;
	while (host->first < host->count && !error &&
	       (host->queue[host->first].stretch.start_ns < until_ns || !host->open_count))
		error = pass(reading, &host->queue[host->first++]);
	return error;
}

static void remove_open(struct host_collectives *host, size_t index)
{
	host->open_count--;
	memmove(host->open + index, host->open + index + 1,
		(host->open_count - index) * sizeof(*host->open));
}

static void begin(struct host_collectives *host, const struct stretch *copy, uint8_t operation)
{
	size_t at;

	if (host->open_count == HOST_OPEN_MAX)
		remove_open(host, 0);
	at = host->open_count++;
	for (; at && host->open[at - 1].copy.enter_ns > copy->enter_ns; at--)
		host->open[at] = host->open[at - 1];
	host->open[at] =
		(struct host_begin){.copy = *copy, .owner = *copy->owner, .operation = operation};
	host->begun_count++;
}

static struct host_thread *thread_of(struct host_collectives *host, uint32_t thread)
{
	for (size_t t = 0; t < host->thread_count; t++)
		if (host->threads[t].thread == thread)
			return &host->threads[t];
	if (host->thread_count < HOST_THREADS_MAX)
		host->thread_count++;
	host->threads[host->thread_count - 1] = (struct host_thread){.thread = thread};
	return &host->threads[host->thread_count - 1];
}

/*
 * Returns the collective that a copy to the GPU ends, open_count if there is none: that on its
 * stream, or else the first of its operation.
 */
static size_t find_open(const struct host_collectives *host, const struct stretch *copy,
			const struct host_thread *thread, uint8_t operation)
{
	for (size_t o = 0; o < host->open_count; o++)
		if (host->open[o].copy.device == copy->device &&
		    host->open[o].copy.stream == copy->stream)
			return o;
	if (thread->enter_ns && thread->stream == copy->stream &&
	    host->begun_count - thread->begun_count < SAME_STREAM_MAX)
		return host->open_count;
	for (size_t o = 0; o < host->open_count; o++)
		if (host->open[o].copy.device == copy->device &&
		    host->open[o].operation == operation &&
		    host->open[o].copy.enter_ns < copy->enter_ns)
			return o;
	return host->open_count;
}

/*
 * Returns when a collective begins: its data is on the host, its thread is free, and all that were
 * launched before have begun. Those that were launched later have not begun earlier.
 */
static uint64_t begin_of(struct host_collectives *host, const struct host_begin *begun,
			 uint64_t free_ns)
{
	uint64_t start_ns = later(begun->copy.end_ns, free_ns);

	for (size_t o = 0; o < host->open_count && &host->open[o] != begun; o++)
		start_ns = later(start_ns, host->open[o].copy.end_ns);
	if (begun->copy.enter_ns > host->last_enter_ns) {
		start_ns = later(start_ns, host->last_start_ns);
		host->last_enter_ns = begun->copy.enter_ns;
		host->last_start_ns = start_ns;
	}
	for (size_t w = host->count; w-- > host->first;) {
		const struct stretch *other = &host->queue[w].stretch;

		if (other->host && other->enter_ns > begun->copy.enter_ns &&
		    other->start_ns < start_ns)
			start_ns = other->start_ns;
	}
	return start_ns;
}

/* Whether a collective comes before work of the queue. */
static bool is_before(const struct stretch *collective, const struct stretch *other)
{
	if (collective->start_ns != other->start_ns || !other->host)
		return collective->start_ns < other->start_ns;
	return collective->enter_ns < other->enter_ns;
}

/* Adds the collective between two copies to the queue. */
static int add_collective(struct host_collectives *host, const struct host_begin *begun,
			  uint64_t free_ns, const struct stretch *copy_back)
{
	size_t at = host->count;
	struct stretch stretch = begun->copy;
	struct queued_work *work;

	stretch.is_kernel = stretch.has_gap = false;
	stretch.is_collective = true;
	stretch.took_ns = 0;
	stretch.start_ns = begin_of(host, begun, free_ns);
	stretch.end_ns = copy_back->enter_ns;
	if (stretch.start_ns > stretch.end_ns)
		stretch.start_ns = stretch.end_ns;
	while (at > host->first && is_before(&stretch, &host->queue[at - 1].stretch))
		at--;
	work = insert(host, at);
	if (!work)
		return -ENOMEM;
	work->stretch = stretch;
	work->stretch.host = &work->host;
	work->owner = begun->owner;
	work->host = (struct host_collective){begun->operation, begun->copy.bytes};
	return 0;
}

/* A thread of gloo does one collective after the other: it begins when the thread is free. */
static int end(struct host_collectives *host, const struct stretch *copy, uint8_t operation)
{
	struct host_thread *thread = thread_of(host, copy->owner->thread);
	size_t index = find_open(host, copy, thread, operation);
	int error = 0;

	if (index < host->open_count) {
		error = add_collective(host, &host->open[index], thread->enter_ns, copy);
		remove_open(host, index);
	}
	thread->stream = copy->stream;
	thread->enter_ns = copy->enter_ns;
	thread->begun_count = host->begun_count;
	return error;
}

int host_collectives_add(struct reading *reading, const struct stretch *stretch)
{
	struct host_collectives *host = &reading->host_collectives;
	struct host_call call = host_call_at(reading->model, stretch->owner->stack);
	int error = 0;

	if (call.part == HOST_CALL_GLOO_RUN && is_copy(stretch, XT_CUPTI_COPY_HTOD))
		error = end(host, stretch, call.operation);
	if (!error)
		error = append(host, stretch, reading->rank_log.collector);
	if (call.part == HOST_CALL_GLOO && collective_needs_all(call.operation) &&
	    is_copy(stretch, XT_CUPTI_COPY_DTOH))
		begin(host, stretch, call.operation);
	if (host->count - host->first > QUEUE_MAX && host->open_count)
		remove_open(host, 0);
	return error ? error : pass_complete(reading);
}

int host_collectives_finish(struct reading *reading)
{
	reading->host_collectives.open_count = 0;
	return pass_complete(reading);
}

void host_collectives_free(struct host_collectives *host)
{
	for (size_t w = host->first; w < host->count; w++)
		free(host->queue[w].gap);
	free(host->queue);
	*host = (struct host_collectives){0};
}
