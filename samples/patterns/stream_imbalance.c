/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributes a job over several streams, but gives nearly all of it to one.
 */
#include "pattern.h"

#define STREAMS	  4
#define PIECES	  400
#define KERNEL_NS 200000
#define BLOCKS	  36 /* a quarter of a large GPU */

/* Bad: the first stream gets nine of ten pieces. */
static int stream_of(const struct pattern *p, int piece)
{
	if (!p->is_bad)
		return piece % STREAMS;
	return piece % 10 ? 0 : 1 + piece / 10 % (STREAMS - 1);
}

STACK_FRAME static void launch_pieces(const struct pattern *p, const CUstream *streams)
{
	for (int i = 0; i < PIECES; i++)
		LAUNCH(p, streams[stream_of(p, i)], BLOCKS, KERNEL_NS); /* finding */
}

int main(int argc, char **argv)
{
	CUstream streams[STREAMS];
	struct pattern p;

	pattern_begin(&p, argc, argv);
	for (int i = 0; i < STREAMS; i++)
		CHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	launch_pieces(&p, streams);
	return pattern_end(&p);
}
