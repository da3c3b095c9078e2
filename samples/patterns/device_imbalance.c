/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributes a job over two GPUs, but gives nearly all of it to one. Needs two GPUs.
 */
#include <stdio.h>

#include "pattern.h"

#define DEVICES	  2
#define PIECES	  200
#define KERNEL_NS 200000

struct gpu {
	CUcontext context;
	CUfunction spin;
};

/* Bad: the first GPU gets nine of ten pieces. */
static int gpu_of(const struct pattern *p, int piece)
{
	return p->is_bad ? piece % 10 == 0 : piece % DEVICES;
}

STACK_FRAME static void launch_pieces(const struct pattern *p, const struct gpu *gpus)
{
	for (int i = 0; i < PIECES; i++) {
		const struct gpu *gpu = &gpus[gpu_of(p, i)];

		CHECK(cuCtxSetCurrent(gpu->context));
		LAUNCH(gpu, NULL, FULL_BLOCKS, KERNEL_NS); /* finding */
	}
}

int main(int argc, char **argv)
{
	struct gpu gpus[DEVICES];
	struct pattern p;
	CUmodule module;
	int count;

	pattern_begin(&p, argc, argv);
	CHECK(cuDeviceGetCount(&count));
	if (count < DEVICES) {
		fprintf(stderr, "%s: there is only one GPU\n", argv[0]);
		return PATTERN_SKIPPED;
	}
	for (int i = 0; i < DEVICES; i++) {
		CHECK(cuDevicePrimaryCtxRetain(&gpus[i].context, i));
		CHECK(cuCtxSetCurrent(gpus[i].context));
		CHECK(cuModuleLoadData(&module, pattern_ptx));
		CHECK(cuModuleGetFunction(&gpus[i].spin, module, "spin"));
	}
	launch_pieces(&p, gpus);
	for (int i = 0; i < DEVICES; i++) {
		CHECK(cuCtxSetCurrent(gpus[i].context));
		CHECK(cuCtxSynchronize());
	}
	CHECK(cuCtxSetCurrent(p.context));
	return pattern_end(&p);
}
