/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes many small copies in a row instead of gathering the pieces and copying them at once.
 */
#include <string.h>

#include "pattern.h"

#define STEPS	    100
#define PIECES	    64
#define PIECE_BYTES 1024
#define KERNEL_NS   200000

STACK_FRAME static void copy_bad(CUdeviceptr to, const char *from, CUstream stream)
{
	for (size_t i = 0; i < PIECES; i++)
		CHECK(cuMemcpyHtoDAsync(to + i * PIECE_BYTES, /* finding */
					from + 2 * i * PIECE_BYTES, PIECE_BYTES, stream));
}

STACK_FRAME static void copy_good(CUdeviceptr to, const char *from, char *gathered, CUstream stream)
{
	for (size_t i = 0; i < PIECES; i++)
		memcpy(gathered + i * PIECE_BYTES, from + 2 * i * PIECE_BYTES, PIECE_BYTES);
	CHECK(cuMemcpyHtoDAsync(to, gathered, (size_t)PIECES * PIECE_BYTES, stream));
}

int main(int argc, char **argv)
{
	size_t step_bytes = (size_t)PIECES * PIECE_BYTES;
	char *from, *gathered;
	struct pattern p;
	CUdeviceptr to;

	pattern_begin(&p, argc, argv);
	CHECK(cuMemAlloc(&to, step_bytes));
	CHECK(cuMemHostAlloc((void **)&from, 2 * step_bytes, 0));
	CHECK(cuMemHostAlloc((void **)&gathered, STEPS * step_bytes, 0));
	memset(from, 1, 2 * step_bytes);
	memset(gathered, 0, STEPS * step_bytes);
	for (int step = 0; step < STEPS; step++) {
		if (p.is_bad)
			copy_bad(to, from, p.stream);
		else
			copy_good(to, from, gathered + (size_t)step * step_bytes, p.stream);
		pattern_spin(&p, p.stream, FULL_BLOCKS, KERNEL_NS);
	}
	return pattern_end(&p);
}
