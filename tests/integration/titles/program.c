/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names CUDA objects through NVTX, before and after their use, in both encodings and through both
 * APIs, and launches a kernel on each stream. The kernel has the name of the stream.
 */
#include <cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "integration/attribution/nvtx_client.h"

enum { STREAMS = 4 };

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry on_default() { ret; }\n"
			  ".visible .entry on_copies() { ret; }\n"
			  ".visible .entry on_compute() { ret; }\n"
			  ".visible .entry on_nameless() { ret; }\n";

static void require(CUresult result)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "cannot go on after error %d\n", result);
	exit(1);
}

int main(void)
{
	static const char *const kernels[STREAMS] = {"on_default", "on_copies", "on_compute",
						     "on_nameless"};
	CUstream streams[STREAMS] = {NULL};
	CUfunction function;
	CUcontext context;
	CUmodule module;
	CUevent event;

	nvtx_start();
	nvtx_name(nvtx_cuda[XT_NVTX_NAME_CU_STREAM_A], NULL, "too early");
	nvtx_name(nvtx_cuda[XT_NVTX_NAME_CU_DEVICE_A], NULL, "left");
	require(cuInit(0));
	require(cuDevicePrimaryCtxRetain(&context, 0));
	require(cuCtxSetCurrent(context));
	require(cuModuleLoadData(&module, ptx));
	require(cuEventCreate(&event, 0));
	for (int i = 1; i < STREAMS; i++)
		require(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	nvtx_name(nvtx_cuda[XT_NVTX_NAME_CU_CONTEXT_W], context, L"main");
	nvtx_name(nvtx_cuda[XT_NVTX_NAME_CU_EVENT_A], event, "done");
	nvtx_name(nvtx_cuda[XT_NVTX_NAME_CU_STREAM_A], streams[1], "will be changed");
	nvtx_name(nvtx_cudart[XT_NVTX_NAME_CUDA_STREAM_W], streams[1], L"k\u00f6pien;1");
	nvtx_name(nvtx_cudart[XT_NVTX_NAME_CUDA_DEVICE_W], NULL, L"right");
	nvtx_name(nvtx_core[XT_NVTX_NAME_OS_THREAD_A],
		  (void *)(uintptr_t)(uint32_t)syscall(SYS_gettid), "trainer");
	for (int i = 0; i < STREAMS; i++) {
		require(cuModuleGetFunction(&function, module, kernels[i]));
		require(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, streams[i], NULL, NULL));
	}
	nvtx_name(nvtx_cuda[XT_NVTX_NAME_CU_STREAM_W], streams[2], L"compute");
	nvtx_name(nvtx_cuda[XT_NVTX_NAME_CU_STREAM_A], NULL, "default");
	require(cuCtxSynchronize());
	return 0;
}
