/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates and frees memory in each step instead of reusing it.
 */
#include "pattern.h"

#define STEPS	      300
#define KERNEL_NS     20000
#define SCRATCH_BYTES (8u << 20)

STACK_FRAME static void step_bad(const struct pattern *p)
{
	CUdeviceptr scratch;

	CHECK(cuMemAlloc(&scratch, SCRATCH_BYTES)); /* finding */
	pattern_spin(p, NULL, FULL_BLOCKS, KERNEL_NS);
	CHECK(cuMemFree(scratch));
}

STACK_FRAME static void step_good(const struct pattern *p)
{
	pattern_spin(p, NULL, FULL_BLOCKS, KERNEL_NS);
}

int main(int argc, char **argv)
{
	CUdeviceptr scratch = 0;
	struct pattern p;

	pattern_begin(&p, argc, argv);
	if (!p.is_bad)
		CHECK(cuMemAlloc(&scratch, SCRATCH_BYTES));
	for (int step = 0; step < STEPS; step++)
		(p.is_bad ? step_bad : step_good)(&p);
	if (!p.is_bad)
		CHECK(cuMemFree(scratch));
	return pattern_end(&p);
}
