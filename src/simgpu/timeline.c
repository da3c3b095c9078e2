/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated time: the place of enqueued work on its stream, and waiting in real time.
 *
 * Work starts once it has reached the device, after a latency. It waits for the stream's earlier
 * work and for the work that its stream implicitly waits for. The legacy default stream and
 * blocking streams wait for each other. Runs on the application's threads.
 */
#include <time.h>

#include "simgpu/sim.h"

#define SPIN_NS 20000 /* below this, spin instead of sleeping */

uint64_t sim_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sim_wait_until(uint64_t time_ns)
{
	uint64_t now_ns;

	while ((now_ns = sim_now_ns()) < time_ns) {
		uint64_t wake_ns = time_ns - SPIN_NS / 2;
		struct timespec wake = {
			.tv_sec = (time_t)(wake_ns / 1000000000),
			.tv_nsec = (long)(wake_ns % 1000000000),
		};

		if (time_ns - now_ns > SPIN_NS)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
	}
}

void sim_raise(_Atomic uint64_t *place, uint64_t value)
{
	uint64_t seen = atomic_load_explicit(place, memory_order_relaxed);

	while (seen < value &&
	       !atomic_compare_exchange_weak_explicit(place, &seen, value, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The end of work on other streams that this stream implicitly waits for. */
static uint64_t implicit_wait_ns(CUstream stream)
{
	CUcontext context = stream->context;

	if (stream->is_legacy)
		return atomic_load_explicit(&context->blocking_tail_ns, memory_order_relaxed);
	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return 0;
	return atomic_load_explicit(&context->legacy.tail_ns, memory_order_relaxed);
}

uint64_t sim_stream_done_ns(CUstream stream)
{
	return max_u64(atomic_load_explicit(&stream->tail_ns, memory_order_relaxed),
		       implicit_wait_ns(stream));
}

/* Locks the stream when its queue has room. Returns the current time. */
static uint64_t lock_with_room(CUstream stream)
{
	for (;;) {
		uint64_t busy_until_ns;
		uint64_t now_ns;

		pthread_mutex_lock(&stream->lock);
		busy_until_ns = stream->queue_end_ns[stream->queue_next];
		now_ns = sim_now_ns();
		if (busy_until_ns <= now_ns)
			return now_ns;
		pthread_mutex_unlock(&stream->lock);
		sim_wait_until(busy_until_ns);
	}
}

/* The partner of lock_with_room(). */
static struct sim_span place_and_unlock(CUstream stream, uint64_t earliest_ns, uint64_t duration_ns)
{
	CUcontext context = stream->context;
	struct sim_span span;

	span.start_ns = max_u64(earliest_ns, sim_stream_done_ns(stream));
	span.end_ns = span.start_ns + duration_ns;
	stream->queue_end_ns[stream->queue_next] = span.end_ns;
	stream->queue_next = (stream->queue_next + 1) % SIM_QUEUE_DEPTH;
	atomic_store_explicit(&stream->tail_ns, span.end_ns, memory_order_relaxed);
	pthread_mutex_unlock(&stream->lock);

	sim_raise(&context->tail_ns, span.end_ns);
	if (!stream->is_legacy && !(stream->flags & CU_STREAM_NON_BLOCKING))
		sim_raise(&context->blocking_tail_ns, span.end_ns);
	return span;
}

struct sim_span sim_stream_enqueue(CUstream stream, uint64_t latency_ns, uint64_t duration_ns)
{
	uint64_t now_ns = lock_with_room(stream);

	return place_and_unlock(stream, now_ns + latency_ns, duration_ns);
}

struct sim_span sim_stream_place_at(CUstream stream, uint64_t earliest_ns, uint64_t duration_ns)
{
	pthread_mutex_lock(&stream->lock);
	return place_and_unlock(stream, earliest_ns, duration_ns);
}

void sim_stream_raise(CUstream stream, uint64_t time_ns)
{
	pthread_mutex_lock(&stream->lock);
	sim_raise(&stream->tail_ns, time_ns);
	pthread_mutex_unlock(&stream->lock);
	sim_raise(&stream->context->tail_ns, time_ns);
}
