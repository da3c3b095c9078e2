/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes large copies from pageable memory, which pass through a buffer of the driver.
 */
#include "pattern.h"

#define STEPS	    60
#define INPUT_BYTES (2u << 20)
#define KERNEL_NS   500000

STACK_FRAME static void load_bad(CUdeviceptr to, const char *from)
{
	CHECK(cuMemcpyHtoD(to, from, INPUT_BYTES)); /* finding */
}

STACK_FRAME static void load_good(CUdeviceptr to, const char *from)
{
	CHECK(cuMemcpyHtoDAsync(to, from, INPUT_BYTES, NULL));
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
		(p.is_bad ? load_bad : load_good)(to, from);
		pattern_spin(&p, NULL, FULL_BLOCKS, KERNEL_NS);
	}
	return pattern_end(&p);
}
