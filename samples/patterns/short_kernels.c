/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches kernels that end before the next launch instead of replaying them as a graph.
 */
#include "pattern.h"

#define KERNELS	  100 /* per step */
#define STEPS	  100
#define KERNEL_NS 500

STACK_FRAME static void run_kernels(const struct pattern *p, CUstream stream)
{
	uint64_t ns = KERNEL_NS;
	void *arguments[] = {&ns};

	for (int i = 0; i < KERNELS; i++)
		CHECK(cuLaunchKernel(p->spin, 1, 1, 1, BLOCK_THREADS, 1, 1, 0, /* finding */
				     stream, arguments, NULL));
}

STACK_FRAME static CUgraphExec capture(const struct pattern *p, CUstream stream)
{
	CUgraphExec exec;
	CUgraph graph;

	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	run_kernels(p, stream);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

int main(int argc, char **argv)
{
	CUgraphExec exec = NULL;
	CUstream stream;
	struct pattern p;

	pattern_begin(&p, argc, argv);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (!p.is_bad)
		exec = capture(&p, stream);
	for (int step = 0; step < STEPS; step++) {
		if (p.is_bad)
			run_kernels(&p, stream);
		else
			CHECK(cuGraphLaunch(exec, stream));
	}
	return pattern_end(&p);
}
