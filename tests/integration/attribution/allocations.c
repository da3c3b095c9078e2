/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: memory, freed by the same thread, by another thread, or never.
 */
#include <stdlib.h>

#include "program.h"

FRAME_FUNCTION void allocate(struct job *job)
{
	struct allocation *made = &job->allocations[job->allocation_count];
	size_t bytes = 1 + pick(job, 1 << (8 + pick(job, 12)));
	CUdeviceptr address = 0;
	void *host = NULL;

	ENTER();
	made->kind = ALLOCATION_DEVICE;
	switch (job->allocation_count < ALLOCATIONS_MAX ? pick(job, 5) : 5) {
	case 0:
		CU(cuMemAlloc, &address, bytes);
		break;
	case 1:
		CU(cuMemAllocManaged, &address, bytes, CU_MEM_ATTACH_GLOBAL);
		break;
	case 2:
		CU(cuMemAllocAsync, &address, bytes, pick_stream(job));
		made->kind = ALLOCATION_ASYNC;
		break;
	case 3:
		CU(cuMemHostAlloc, &host, bytes, 0);
		made->kind = ALLOCATION_HOST;
		break;
	case 4:
		CU(cuMemAllocHost, &host, bytes);
		made->kind = ALLOCATION_HOST;
		break;
	}
	made->address = host ? (uintptr_t)host : (uintptr_t)address;
	if (made->address)
		job->allocation_count++;
	LEAVE();
}

FRAME_FUNCTION void release(struct job *job)
{
	unsigned which = pick(job, job->allocation_count + 1);
	struct allocation *doomed = &job->allocations[which];

	ENTER();
	if (which < job->allocation_count) {
		switch (doomed->kind) {
		case ALLOCATION_DEVICE:
			CU(cuMemFree, doomed->address);
			break;
		case ALLOCATION_ASYNC:
			CU(cuMemFreeAsync, doomed->address, pick_stream(job));
			break;
		case ALLOCATION_HOST:
			CU(cuMemFreeHost, (void *)doomed->address);
			break;
		}
		*doomed = job->allocations[--job->allocation_count];
	}
	LEAVE();
}

/* Leaves memory for another thread to free. */
FRAME_FUNCTION void hand_over(struct job *job)
{
	struct shared *shared = job->shared;
	CUdeviceptr address = 0;

	ENTER();
	pthread_mutex_lock(&shared->lock);
	if (job->gpu == &shared->gpus[0] && shared->handed_over_count < ALLOCATIONS_MAX &&
	    CU(cuMemAlloc, &address, 1 + pick(job, 100000)) == CUDA_SUCCESS)
		shared->handed_over[shared->handed_over_count++] = address;
	pthread_mutex_unlock(&shared->lock);
	LEAVE();
}

FRAME_FUNCTION void take_over(struct job *job)
{
	struct shared *shared = job->shared;

	ENTER();
	pthread_mutex_lock(&shared->lock);
	if (job->gpu == &shared->gpus[0] && shared->handed_over_count)
		CU(cuMemFree, shared->handed_over[--shared->handed_over_count]);
	pthread_mutex_unlock(&shared->lock);
	LEAVE();
}

FRAME_FUNCTION void allocate_too_much(struct job *job)
{
	CUdeviceptr address;

	(void)job;
	ENTER();
	CU(cuMemAlloc, &address, (size_t)1 << 50);
	LEAVE();
}

FRAME_FUNCTION void release_wrongly(struct job *job)
{
	ENTER();
	if (pick(job, 2))
		CU(cuMemFree, job->device_buffer + 4);
	else
		CU(cuMemFreeHost, job->pageable_buffer);
	LEAVE();
}

/* Buffers for the job's copies, which may outlive it. */
FRAME_FUNCTION void buffers_make(struct job *job)
{
	struct shared *shared = job->shared;

	ENTER();
	job->pageable_buffer = calloc(1, BUFFER_BYTES);
	pthread_mutex_lock(&shared->lock);
	shared->pageable_buffers[shared->pageable_buffer_count++] = job->pageable_buffer;
	pthread_mutex_unlock(&shared->lock);
	if (CU(cuMemAlloc, &job->device_buffer, BUFFER_BYTES) ||
	    CU(cuMemAllocHost, &job->pinned_buffer, BUFFER_BYTES) || !job->pageable_buffer)
		abort();
	LEAVE();
}
