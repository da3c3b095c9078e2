/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies in, computes and copies out one after the other. Good: copies the next piece while a
 * kernel runs.
 */
#include <string.h>

#include "pattern.h"

#define PIECES	    400
#define PIECE_BYTES (256u << 10)
#define KERNEL_NS   26000
#define BUFFERS	    3

struct buffer {
	CUdeviceptr memory;
	char *host;
	CUevent copied, computed, free;
};

struct lanes {
	CUstream in, compute, out;
};

static void make_buffer(struct buffer *buffer)
{
	CHECK(cuMemAlloc(&buffer->memory, PIECE_BYTES));
	CHECK(cuMemHostAlloc((void **)&buffer->host, PIECE_BYTES, 0));
	memset(buffer->host, 1, PIECE_BYTES);
	CHECK(cuEventCreate(&buffer->copied, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&buffer->computed, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&buffer->free, CU_EVENT_DISABLE_TIMING));
}

STACK_FRAME static void work_bad(const struct pattern *p, const struct buffer *b,
				 const struct lanes *lanes)
{
	CUstream one = lanes->compute;

	CHECK(cuMemcpyHtoDAsync(b->memory, b->host, PIECE_BYTES, one)); /* finding */
	pattern_spin(p, one, FULL_BLOCKS, KERNEL_NS);
	CHECK(cuMemcpyDtoHAsync(b->host, b->memory, PIECE_BYTES, one)); /* finding */
}

STACK_FRAME static void work_good(const struct pattern *p, const struct buffer *b,
				  const struct lanes *lanes)
{
	CHECK(cuStreamWaitEvent(lanes->in, b->free, 0));
	CHECK(cuMemcpyHtoDAsync(b->memory, b->host, PIECE_BYTES, lanes->in));
	CHECK(cuEventRecord(b->copied, lanes->in));
	CHECK(cuStreamWaitEvent(lanes->compute, b->copied, 0));
	pattern_spin(p, lanes->compute, FULL_BLOCKS, KERNEL_NS);
	CHECK(cuEventRecord(b->computed, lanes->compute));
	CHECK(cuStreamWaitEvent(lanes->out, b->computed, 0));
	CHECK(cuMemcpyDtoHAsync(b->host, b->memory, PIECE_BYTES, lanes->out));
	CHECK(cuEventRecord(b->free, lanes->out));
}

int main(int argc, char **argv)
{
	struct buffer buffers[BUFFERS];
	struct lanes lanes;
	struct pattern p;

	pattern_begin(&p, argc, argv);
	CHECK(cuStreamCreate(&lanes.in, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&lanes.compute, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&lanes.out, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < BUFFERS; i++)
		make_buffer(&buffers[i]);
	for (int i = 0; i < PIECES; i++)
		(p.is_bad ? work_bad : work_good)(&p, &buffers[i % BUFFERS], &lanes);
	return pattern_end(&p);
}
