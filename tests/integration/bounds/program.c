/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program LAUNCHES [MODE]: launches as many kernels, from two places that take turns, in one thread. MODE:
 *
 *	kill	ends by SIGKILL
 *	churn	each launch has a stack of its own, and so has to be walked; then two seconds with few launches
 */
#include <cuda.h>

#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The callback's frame lies elsewhere each time. */
static __attribute__((noinline)) void churn(long i)
{
	volatile char *room = alloca(16 + (size_t)(i * 7919 % 20011) * 16);

	room[0] = 1;
	even();
	__asm__ volatile("" ::"r"(room));
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
		if (!strcmp(mode, "churn"))
			churn(i);
		else if (i % 2)
			odd();
		else
			even();
		if (i % 512 == 511)
			check(cuCtxSynchronize());
	}
	check(cuCtxSynchronize());
	for (int i = 0; i < 400 && !strcmp(mode, "churn"); i++) {
		odd();
		usleep(5000);
	}
	if (!strcmp(mode, "kill"))
		raise(SIGKILL);
	if (!strcmp(mode, "status")) {
		printf("done\n");
		return 7;
	}
	return 0;
}
