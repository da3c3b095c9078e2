/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program LAUNCHES: launches as many kernels, from two places that take turns, in one thread, with an NVTX
 * mark of nothing now and then; ends in order, or, with a second argument, by SIGKILL.
 */
#include <cuda.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static CUfunction function;

static void check(CUresult result)
{
	if (result != CUDA_SUCCESS)
		exit(99);
}

static __attribute__((noinline)) void even(void)
{
	check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	__asm__ volatile("");
}

static __attribute__((noinline)) void odd(void)
{
	check(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry kernel() { ret; }\n";
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
	CUcontext context;
	CUmodule module;
	CUdevice device;

	check(cuInit(0));
	check(cuDeviceGet(&device, 0));
	check(cuDevicePrimaryCtxRetain(&context, device));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, ptx));
	check(cuModuleGetFunction(&function, module, "kernel"));
	for (long i = 0; i < count; i++) {
		if (i % 2)
			odd();
		else
			even();
		if (i % 512 == 511)
			check(cuCtxSynchronize());
	}
	check(cuCtxSynchronize());
	if (argc > 2)
		raise(SIGKILL);
	return 0;
}
