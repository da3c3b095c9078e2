/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program STEPS COUNT: in each step, one line launches 2 kernels, and another COUNT kernels. Steps
 * end with a synchronisation.
 */
#include <cuda.h>

#include <stdlib.h>

static CUfunction functions[2];

static void check(CUresult result)
{
	if (result != CUDA_SUCCESS)
		exit(99);
}

static __attribute__((noinline)) void launch(CUfunction function)
{
	check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static __attribute__((noinline)) void step(long count)
{
	for (long i = 0; i < 2; i++)
		launch(functions[0]);
	for (long i = 0; i < count; i++)
		launch(functions[1]);
	check(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry same_kernel() { ret; }\n"
				  ".visible .entry grown_kernel() { ret; }\n";
	CUcontext context;
	CUmodule module;
	CUdevice device;

	check(argc == 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	check(cuInit(0));
	check(cuDeviceGet(&device, 0));
	check(cuDevicePrimaryCtxRetain(&context, device));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, ptx));
	check(cuModuleGetFunction(&functions[0], module, "same_kernel"));
	check(cuModuleGetFunction(&functions[1], module, "grown_kernel"));
	for (long i = strtol(argv[1], NULL, 10); i > 0; i--)
		step(strtol(argv[2], NULL, 10));
	return 0;
}
