/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the GPU after each kernel instead of once at the end.
 */
#include "pattern.h"

#define STEPS	  400
#define KERNEL_NS 30000

STACK_FRAME static void step(const struct pattern *p)
{
	pattern_spin(p, p->stream, FULL_BLOCKS, KERNEL_NS);
	if (p->is_bad)
		CHECK(cuStreamSynchronize(p->stream)); /* finding */
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	for (int i = 0; i < STEPS; i++)
		step(&p);
	CHECK(cuStreamSynchronize(p.stream));
	return pattern_end(&p);
}
