/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes asynchronous copies from pageable memory, which block the thread.
 */
#include "pattern.h"

#define STEPS	    100
#define INPUT_BYTES (1u << 20)
#define KERNEL_NS   300000

STACK_FRAME static void load(CUdeviceptr to, const char *from, CUstream stream)
{
	CHECK(cuMemcpyHtoDAsync(to, from, INPUT_BYTES, stream)); /* finding */
}

int main(int argc, char **argv)
{
	struct pattern p;
	CUdeviceptr to;
	char *from;

	pattern_begin(&p, argc, argv);
	CHECK(cuMemAlloc(&to, INPUT_BYTES));
	from = pattern_input(&p, INPUT_BYTES);
	for (int step = 0; step < STEPS; step++) {
		load(to, from, p.stream);
		pattern_spin(&p, p.stream, FULL_BLOCKS, KERNEL_NS);
	}
	return pattern_end(&p);
}
