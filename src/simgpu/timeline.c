/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated time: the place of enqueued work on its stream, its duration, waiting in real time, and
 * the host functions that run at their time.
 *
 * Work starts once it has reached the device, after a latency. It waits for the stream's earlier
 * work and for the work that its stream implicitly waits for. The legacy default stream and
 * blocking streams wait for each other. Runs on the application's threads.
 */
#include <stdlib.h>
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

/*
 * Durations depend on the seed, the kernel's name, its grid and block, and the number of launches
 * on its stream. The same program with the same seed gets the same durations.
 */
#define KERNEL_FLOOR_NS		   1500 /* an empty kernel */
#define KERNEL_WAVE_NS		   2000 /* one wave of threads of the cheapest kernel */
#define KERNEL_CEILING_NS	   20000000
#define RESIDENT_THREADS	   (132 * 2048)
#define HOST_COPY_BYTES_PER_US	   25000
#define PAGEABLE_COPY_BYTES_PER_US 6000 /* memory that is not pinned */
#define DEVICE_COPY_BYTES_PER_US   1500000

static uint64_t mix(uint64_t value)
{
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	return value ^ value >> 32;
}

uint64_t sim_hash(const void *data, size_t bytes, uint64_t seed)
{
	const unsigned char *p = data;
	uint64_t hash = mix(seed + bytes);

	while (bytes--)
		hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
	return mix(hash);
}

uint64_t sim_kernel_duration_ns(const struct sim_shape *shape, uint64_t index)
{
	const struct sim_config *config = sim_config();
	uint64_t kernel = mix(shape->function->name_hash ^ config->seed);
	uint64_t threads = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2] *
			   shape->block[0] * shape->block[1] * shape->block[2];
	uint64_t draw = mix(kernel ^ mix(threads + (shape->block[0] ^ index << 20)));
	uint64_t cost;
	uint64_t duration_ns;

	if (config->kernel_max_ns)
		return config->kernel_min_ns +
		       draw % (config->kernel_max_ns - config->kernel_min_ns + 1);
	cost = KERNEL_WAVE_NS * (1 + kernel % 8);
	duration_ns = KERNEL_FLOOR_NS + cost / 4;
	if (threads < (uint64_t)KERNEL_CEILING_NS * RESIDENT_THREADS / cost)
		duration_ns += cost * threads / RESIDENT_THREADS;
	else
		duration_ns = KERNEL_CEILING_NS;
	return duration_ns + duration_ns * (draw % 64) / 512; /* up to an eighth longer */
}

uint64_t sim_copy_duration_ns(uint64_t bytes, uint8_t copy_kind, bool is_pageable)
{
	uint64_t bytes_per_us = copy_kind == XT_CUPTI_COPY_DTOD ? DEVICE_COPY_BYTES_PER_US
				: is_pageable			? PAGEABLE_COPY_BYTES_PER_US
								: HOST_COPY_BYTES_PER_US;

	return 800 + bytes * 1000 / bytes_per_us;
}

uint64_t sim_set_duration_ns(uint64_t bytes)
{
	return 700 + bytes * 1000 / DEVICE_COPY_BYTES_PER_US;
}

/*
 * The queue of host functions. One thread runs them in the order of their times; the first one
 * starts it. That thread blocks all signals and calls no driver function.
 */
struct job {
	uint64_t when_ns;
	CUhostFn function;
	void *user_data;
	CUstream stream;
	CUcontext context;
	struct job *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job *jobs; /* by when_ns, earliest first; under lock */
static bool is_started;	 /* under lock */

static void run_jobs_locked(void)
{
	struct job *job;

	while (!jobs)
		pthread_cond_wait(&changed, &lock);
	job = jobs;
	jobs = job->next;
	pthread_mutex_unlock(&lock);
	sim_wait_until(job->when_ns);
	job->function(job->user_data);
	pthread_mutex_lock(&lock);
	atomic_fetch_sub(&job->stream->host_pending_count, 1);
	atomic_fetch_sub(&job->context->host_pending_count, 1);
	pthread_cond_broadcast(&changed);
	free(job);
}

static void *worker(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;)
		run_jobs_locked();
	return unused;
}

void sim_host_expect(CUstream stream)
{
	atomic_fetch_add(&stream->host_pending_count, 1);
	atomic_fetch_add(&stream->context->host_pending_count, 1);
}

void sim_host_forget(CUstream stream)
{
	pthread_mutex_lock(&lock);
	atomic_fetch_sub(&stream->host_pending_count, 1);
	atomic_fetch_sub(&stream->context->host_pending_count, 1);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

CUresult sim_host_queue(CUstream stream, CUhostFn function, void *user_data, uint64_t when_ns)
{
	struct job *job = malloc(sizeof(*job));
	struct job **place;

	if (!job)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*job = (struct job){when_ns, function, user_data, stream, stream->context, NULL};
	pthread_mutex_lock(&lock);
	if (!is_started && sim_start_thread(worker)) {
		pthread_mutex_unlock(&lock);
		free(job);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	is_started = true;
	for (place = &jobs; *place && (*place)->when_ns <= when_ns; place = &(*place)->next)
		;
	job->next = *place;
	*place = job;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult sim_host_enqueue(CUstream stream, CUhostFn function, void *user_data, uint64_t when_ns)
{
	CUresult result;

	sim_host_expect(stream);
	result = sim_host_queue(stream, function, user_data, when_ns);
	if (result)
		sim_host_forget(stream);
	return result;
}

void sim_host_drain(CUstream stream, CUcontext context)
{
	_Atomic uint32_t *pending =
		stream ? &stream->host_pending_count : &context->host_pending_count;

	if (!atomic_load(pending))
		return;
	pthread_mutex_lock(&lock);
	while (atomic_load(pending))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}
