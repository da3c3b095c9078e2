/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches kernels on one device.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>

static const char code[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			   ".visible .entry _ZN2nn5scaleIfEEvPT_() { ret; }\n";

static CUfunction function;

static void check(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, (int)result);
	exit(1);
}

void device_open(void)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;

	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "cuDeviceGet");
	check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	check(cuModuleLoadData(&module, code), "cuModuleLoadData");
	check(cuModuleGetFunction(&function, module, "_ZN2nn5scaleIfEEvPT_"),
	      "cuModuleGetFunction");
}

void device_launch(unsigned blocks)
{
	check(cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL),
	      "cuLaunchKernel");
	__asm__ volatile(""); /* prevents a tail call, which would drop this frame */
}

void device_close(void)
{
	check(cuCtxSynchronize(), "cuCtxSynchronize");
}
