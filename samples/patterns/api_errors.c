/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a launch that always fails, and ignores the error.
 */
#include "pattern.h"

#define STEPS	  20
#define KERNEL_NS 100000
#define TOO_MANY  4096 /* threads per block */

STACK_FRAME static void step(const struct pattern *p)
{
	uint64_t ns = KERNEL_NS;
	void *arguments[] = {&ns};
	unsigned threads = p->is_bad ? TOO_MANY : BLOCK_THREADS;

	(void)cuLaunchKernel(p->spin, FULL_BLOCKS, 1, 1, threads, 1, 1, 0, p->stream, /* finding */
			     arguments, NULL);
	pattern_spin(p, p->stream, FULL_BLOCKS, KERNEL_NS);
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	for (int i = 0; i < STEPS; i++)
		step(&p);
	return pattern_end(&p);
}
