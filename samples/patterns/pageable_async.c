/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes asynchronous copies from pageable memory, which block the thread.
 */
#include <stdlib.h>
#include <string.h>

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
	CUstream stream;
	struct pattern p;
	CUdeviceptr to;
	char *from;

	pattern_begin(&p, argc, argv);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&to, INPUT_BYTES));
	if (p.is_bad)
		from = malloc(INPUT_BYTES);
	else
		CHECK(cuMemHostAlloc((void **)&from, INPUT_BYTES, 0));
	if (!from)
		return 1;
	memset(from, 1, INPUT_BYTES);
	for (int step = 0; step < STEPS; step++) {
		load(to, from, stream);
		pattern_spin(&p, stream, FULL_BLOCKS, KERNEL_NS);
	}
	return pattern_end(&p);
}
