/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches kernels that end before the next launch instead of replaying them as a graph.
 */
#include "pattern.h"

#define KERNELS	  100 /* per step */
#define STEPS	  100
#define KERNEL_NS 500

STACK_FRAME static void run_kernels(const struct pattern *p)
{
	for (int i = 0; i < KERNELS; i++)
		LAUNCH(p, p->stream, 1, KERNEL_NS); /* finding */
}

STACK_FRAME static CUgraphExec capture(const struct pattern *p)
{
	CUgraphExec exec;
	CUgraph graph;

	CHECK(cuStreamBeginCapture(p->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	run_kernels(p);
	CHECK(cuStreamEndCapture(p->stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

int main(int argc, char **argv)
{
	CUgraphExec exec = NULL;
	struct pattern p;

	pattern_begin(&p, argc, argv);
	if (!p.is_bad)
		exec = capture(&p);
	for (int step = 0; step < STEPS; step++) {
		if (p.is_bad)
			run_kernels(&p);
		else
			CHECK(cuGraphLaunch(exec, p.stream));
	}
	return pattern_end(&p);
}
