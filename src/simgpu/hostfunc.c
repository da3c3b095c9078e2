/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of host functions. One thread runs them in the order of their times; the first one
 * starts it. That thread blocks all signals and calls no driver function.
 */
#include <signal.h>
#include <stdlib.h>

#include "simgpu/sim.h"

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

static int start_worker(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;
	sigset_t before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attributes, worker, NULL);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
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
	if (!is_started && start_worker()) {
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
