/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches kernels of a few blocks, which leave most of the GPU unused.
 */
#include "pattern.h"

#define STEPS	  200
#define KERNEL_NS 200000
#define FEW	  4 /* blocks */

STACK_FRAME static void step(const struct pattern *p)
{
	unsigned blocks = p->is_bad ? FEW : FULL_BLOCKS;

	LAUNCH(p, p->stream, blocks, KERNEL_NS); /* finding */
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	for (int i = 0; i < STEPS; i++)
		step(&p);
	return pattern_end(&p);
}
