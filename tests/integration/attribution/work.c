/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations: kernels, copies, memsets, events, waits, and failing calls.
 */
#include <stdlib.h>
#include <time.h>

#include "program.h"

CUstream pick_stream(struct job *job)
{
	unsigned which = pick(job, STREAMS + 2);

	if (job->captured)
		return job->is_forked && which % 2 ? job->side : job->captured;
	if (which < STREAMS)
		return job->streams[which];
	return which == STREAMS ? NULL : CU_STREAM_PER_THREAD;
}

CUfunction pick_kernel(struct job *job)
{
	return job->gpu->kernels[pick(job, KERNELS)];
}

FRAME_FUNCTION void launch_kernel(struct job *job)
{
	ENTER();
	for (unsigned i = 0, count = 1 + pick(job, 3); i < count; i++)
		CU(cuLaunchKernel, pick_kernel(job), 1 + pick(job, 64), 1, 1, 32 << pick(job, 4), 1,
		   1, 0, pick_stream(job), NULL, NULL);
	LEAVE();
}

FRAME_FUNCTION void launch_variant(struct job *job)
{
	CUlaunchConfig config = {
		.gridDimX = 1 + pick(job, 16),
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 64,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = pick_stream(job),
	};

	ENTER();
	switch (pick(job, 3)) {
	case 0:
		CU(cuLaunchKernelEx, &config, pick_kernel(job), NULL, NULL);
		break;
	case 1:
		CU(cuLaunchCooperativeKernel, pick_kernel(job), 4, 1, 1, 128, 1, 1, 0,
		   config.hStream, NULL);
		break;
	case 2:
		CU(cuLaunchKernel_ptsz, pick_kernel(job), 2, 2, 1, 32, 2, 1, 0, config.hStream,
		   NULL, NULL);
		break;
	}
	LEAVE();
}

/* These two have no effect if the recording ignores them. */
FRAME_FUNCTION void pause_recording(struct job *job)
{
	(void)job;
	ENTER();
	CU(cuProfilerStop);
	LEAVE();
}

FRAME_FUNCTION void resume_recording(struct job *job)
{
	(void)job;
	ENTER();
	CU(cuProfilerStart);
	LEAVE();
}

FRAME_FUNCTION void launch_wrongly(struct job *job)
{
	ENTER();
	if (pick(job, 2))
		CU(cuLaunchKernel, pick_kernel(job), 1, 1, 1, 2048, 1, 1, 0, pick_stream(job), NULL,
		   NULL);
	else
		CU(cuLaunchKernel, pick_kernel(job), 0, 1, 1, 32, 1, 1, 0, pick_stream(job), NULL,
		   NULL);
	LEAVE();
}

static void *pick_host_buffer(struct job *job)
{
	return pick(job, 2) ? job->pinned_buffer : job->pageable_buffer;
}

/* The two halves of the device buffer never overlap. */
static CUdeviceptr upper_half(struct job *job)
{
	return job->device_buffer + BUFFER_BYTES / 2;
}

FRAME_FUNCTION void copy_and_wait(struct job *job)
{
	size_t bytes = 4 + pick(job, BUFFER_BYTES / 2 - 4);
	void *host = pick_host_buffer(job);

	ENTER();
	switch (pick(job, 4)) {
	case 0:
		CU(cuMemcpyHtoD, job->device_buffer, host, bytes);
		break;
	case 1:
		CU(cuMemcpyDtoH, host, job->device_buffer, bytes);
		break;
	case 2:
		CU(cuMemcpyDtoD, job->device_buffer, upper_half(job), bytes);
		break;
	case 3:
		CU(cuMemcpy, job->device_buffer, (CUdeviceptr)(uintptr_t)host, bytes);
		break;
	}
	LEAVE();
}

FRAME_FUNCTION void copy_async(struct job *job)
{
	size_t bytes = 4 + pick(job, BUFFER_BYTES / 2 - 4);
	CUstream stream = pick_stream(job);
	void *host = pick_host_buffer(job);
	unsigned what = pick(job, 4);

	ENTER();
	switch (job->captured && job->without_copies ? 4 : what) {
	case 0:
		CU(cuMemcpyHtoDAsync, job->device_buffer, host, bytes, stream);
		break;
	case 1:
		CU(cuMemcpyDtoHAsync, host, job->device_buffer, bytes, stream);
		break;
	case 2:
		CU(cuMemcpyDtoDAsync, upper_half(job), job->device_buffer, bytes, stream);
		break;
	case 3:
		CU(cuMemcpyAsync, (CUdeviceptr)(uintptr_t)host, job->device_buffer, bytes, stream);
		break;
	}
	LEAVE();
}

/* Each job uses its own part of the other context's buffer. */
FRAME_FUNCTION void copy_to_peer(struct job *job)
{
	const struct gpu *peer = &job->shared->gpus[pick(job, job->shared->gpu_count)];
	CUdeviceptr there = peer->peer_buffer + job->number * 4096;

	ENTER();
	if (pick(job, 2) && !job->captured)
		CU(cuMemcpyPeer, there, peer->context, job->device_buffer, job->gpu->context,
		   1 + pick(job, 4096));
	else
		CU(cuMemcpyPeerAsync, there, peer->context, job->device_buffer, job->gpu->context,
		   1 + pick(job, 4096), pick_stream(job));
	LEAVE();
}

FRAME_FUNCTION void set_and_wait(struct job *job)
{
	ENTER();
	if (pick(job, 2))
		CU(cuMemsetD8, job->device_buffer, 7, 1 + pick(job, BUFFER_BYTES));
	else
		CU(cuMemsetD32, job->device_buffer, 7, 1 + pick(job, BUFFER_BYTES / 4));
	LEAVE();
}

FRAME_FUNCTION void set_async(struct job *job)
{
	ENTER();
	if (pick(job, 2))
		CU(cuMemsetD8Async, job->device_buffer, 1, 1 + pick(job, BUFFER_BYTES),
		   pick_stream(job));
	else
		CU(cuMemsetD16Async, job->device_buffer, 1, 1 + pick(job, BUFFER_BYTES / 2),
		   pick_stream(job));
	LEAVE();
}

static void CUDA_CB do_nothing(void *unused)
{
	(void)unused;
}

FRAME_FUNCTION void call_host(struct job *job)
{
	ENTER();
	CU(cuLaunchHostFunc, pick_stream(job), do_nothing, NULL);
	LEAVE();
}

/* Fails for a stream under capture. */
FRAME_FUNCTION void wait_for_stream(struct job *job)
{
	ENTER();
	CU(cuStreamSynchronize, pick_stream(job));
	LEAVE();
}

FRAME_FUNCTION void wait_for_all(struct job *job)
{
	(void)job;
	ENTER();
	CU(cuCtxSynchronize);
	LEAVE();
}

FRAME_FUNCTION void wait_for_event(struct job *job)
{
	ENTER();
	CU(cuEventRecord, job->event, pick_stream(job));
	if (pick(job, 2))
		launch_kernel(job);
	CU(cuEventSynchronize, job->event);
	LEAVE();
}

FRAME_FUNCTION void order_streams(struct job *job)
{
	ENTER();
	CU(cuEventRecord, job->event, pick_stream(job));
	CU(cuStreamWaitEvent, pick_stream(job), job->event, 0);
	LEAVE();
}

FRAME_FUNCTION void query(struct job *job)
{
	ENTER();
	if (pick(job, 2))
		CU(cuStreamQuery, pick_stream(job));
	else
		CU(cuEventQuery, job->event);
	LEAVE();
}

/* Computes, or sleeps. */
FRAME_FUNCTION void pause_cpu(struct job *job)
{
	uint64_t duration_ns = 1000 + pick(job, 200000);
	uint64_t until_ns = ledger_now_ns() + duration_ns;

	ENTER();
	if (pick(job, 2))
		nanosleep(&(struct timespec){.tv_nsec = (long)duration_ns}, NULL);
	else
		while (ledger_now_ns() < until_ns)
			;
	LEAVE();
}

FRAME_FUNCTION void use_module(struct job *job)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry short_lived() { ret; }\n";
	CUfunction function;
	CUmodule module;

	ENTER();
	if (CU(cuModuleLoadData, &module, ptx) == CUDA_SUCCESS) {
		CU(cuModuleGetFunction, &function, module, "short_lived");
		CU(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, job->streams[0], NULL, NULL);
		CU(cuStreamSynchronize, job->streams[0]);
		CU(cuModuleUnload, module);
	}
	LEAVE();
}

/* Work on the old stream continues. */
FRAME_FUNCTION void renew_stream(struct job *job)
{
	unsigned which = pick(job, STREAMS);

	ENTER();
	CU(cuStreamDestroy, job->streams[which]);
	if (CU(cuStreamCreate, &job->streams[which],
	       pick(job, 2) ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT))
		abort();
	LEAVE();
}
