/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses several streams that cannot run concurrently, because work in the default stream separates
 * them.
 */
#include "pattern.h"

#define STREAMS	    4
#define STEPS	    60
#define KERNEL_NS   200000
#define BLOCKS	    36 /* a quarter of a large GPU */
#define CLEAR_BYTES 4096

STACK_FRAME static void step(const struct pattern *p, const CUstream *streams, CUdeviceptr counter)
{
	for (int i = 0; i < STREAMS; i++) {
		LAUNCH(p, streams[i], BLOCKS, KERNEL_NS); /* finding */
		if (p->is_bad)
			CHECK(cuMemsetD8Async(counter, 0, CLEAR_BYTES, NULL));
	}
}

int main(int argc, char **argv)
{
	CUstream streams[STREAMS];
	CUdeviceptr counter;
	struct pattern p;

	pattern_begin(&p, argc, argv);
	CHECK(cuMemAlloc(&counter, CLEAR_BYTES));
	for (int i = 0; i < STREAMS; i++)
		CHECK(cuStreamCreate(&streams[i],
				     p.is_bad ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < STEPS; i++)
		step(&p, streams, counter);
	return pattern_end(&p);
}
