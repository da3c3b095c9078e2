/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program LAUNCHES [MODE]: launches kernels in one thread, from three call sites in the ratio 70 :
 * 29 : 1. MODE:
 *
 *	kill	ends by SIGKILL
 *	status	prints "done" and exits with status 7
 */
#include <cuda.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUfunction function;

static void check(CUresult result)
{
	if (result != CUDA_SUCCESS)
		exit(99);
}

/* The compiler would merge identical functions. */
#define PLACE(name)                                                                                \
	static __attribute__((noinline)) void name(void)                                           \
	{                                                                                          \
		check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));           \
		__asm__ volatile("/* " #name " */");                                               \
	}
PLACE(often)
PLACE(less)
PLACE(seldom)

/* Mixed, without a short period: 37 and 100 have no common divisor. */
static void launch(long i)
{
	long turn = i * 37 % 100;

	if (turn < 70)
		often();
	else if (turn < 99)
		less();
	else
		seldom();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "";
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
		launch(i);
		if (i % 512 == 511)
			check(cuCtxSynchronize());
	}
	check(cuCtxSynchronize());
	if (!strcmp(mode, "kill"))
		raise(SIGKILL);
	if (!strcmp(mode, "status")) {
		printf("done\n");
		return 7;
	}
	return 0;
}
