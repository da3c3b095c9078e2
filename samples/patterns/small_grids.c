/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches kernels of a few blocks, which leave most of the GPU unused.
 */
#include "pattern.h"

#define STEPS	  200
#define KERNEL_NS 200000
#define FEW	  4 /* blocks */

STACK_FRAME static void step(const struct pattern *p, CUstream stream)
{
	uint64_t ns = KERNEL_NS;
	void *arguments[] = {&ns};
	unsigned blocks = p->is_bad ? FEW : FULL_BLOCKS;

	CHECK(cuLaunchKernel(p->spin, blocks, 1, 1, BLOCK_THREADS, 1, 1, 0, stream, /* finding */
			     arguments, NULL));
}

int main(int argc, char **argv)
{
	CUstream stream;
	struct pattern p;

	pattern_begin(&p, argc, argv);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < STEPS; i++)
		step(&p, stream);
	return pattern_end(&p);
}
