/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the GPU after each kernel instead of once at the end.
 */
#include "pattern.h"

#define STEPS	  400
#define KERNEL_NS 30000

STACK_FRAME static void step(const struct pattern *p, CUstream stream)
{
	pattern_spin(p, stream, FULL_BLOCKS, KERNEL_NS);
	if (p->is_bad)
		CHECK(cuStreamSynchronize(stream)); /* finding */
}

int main(int argc, char **argv)
{
	CUstream stream;
	struct pattern p;

	pattern_begin(&p, argc, argv);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < STEPS; i++)
		step(&p, stream);
	CHECK(cuStreamSynchronize(stream));
	return pattern_end(&p);
}
