/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of every kind behind a collective whose last rank is late. That rank arrives only when rank
 * 0 has seen that none of it is done.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

#define BYTES 4096

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry mixed_behind() { ret; }\n"
			  ".visible .entry mixed_joined() { ret; }\n"
			  ".visible .entry mixed_legacy() { ret; }\n"
			  ".visible .entry mixed_beside() { ret; }\n"
			  ".visible .entry mixed_replayed() { ret; }\n";

struct mixed {
	CUmodule module;
	CUstream behind; /* a blocking stream, so the legacy stream waits for it */
	CUstream joined, beside;
	CUevent before, after;
	_Atomic int called_count;
};

static void require(bool is_right, const char *what)
{
	if (is_right)
		return;
	fprintf(stderr, "mixed: %s\n", what);
	exit(1);
}

static void launch(struct mixed *mixed, const char *name, CUstream stream)
{
	CUfunction function;

	check(cuModuleGetFunction(&function, mixed->module, name), name);
	check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), name);
}

static void CUDA_CB host_function(void *data)
{
	struct mixed *mixed = data;

	atomic_fetch_add(&mixed->called_count, 1);
}

static void marker_path(char *out, size_t bytes)
{
	snprintf(out, bytes, "%s/checked", getenv("XTRACE_SIMGPU_RANKS"));
}

static void await_marker(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	char path[4096];

	marker_path(path, sizeof(path));
	while (access(path, F_OK))
		nanosleep(&moment, NULL);
}

static void make_marker(void)
{
	char path[4096];
	int file;

	marker_path(path, sizeof(path));
	file = open(path, O_CREAT | O_WRONLY, 0600);
	require(file >= 0, "marker");
	close(file);
}

static void enqueue(struct mixed *mixed, const struct model *model, void *memory)
{
	check(cuEventRecord(mixed->before, mixed->behind), "record");
	check(collective(&model->world, ALL_REDUCE, BYTES, 0, mixed->behind), "all-reduce");
	launch(mixed, "mixed_behind", mixed->behind);
	check(cuMemcpyDtoHAsync(memory, model->batch, BYTES, mixed->behind), "copy");
	check(cuMemsetD8Async(model->batch, 1, BYTES, mixed->behind), "memset");
	check(cuLaunchHostFunc(mixed->behind, host_function, mixed), "host function");
	check(cuEventRecord(mixed->after, mixed->behind), "record");
	check(cuStreamWaitEvent(mixed->joined, mixed->after, 0), "wait");
	launch(mixed, "mixed_joined", mixed->joined);
	launch(mixed, "mixed_legacy", CU_STREAM_LEGACY);
	launch(mixed, "mixed_beside", mixed->beside);
}

static void check_pending(struct mixed *mixed)
{
	check(cuStreamSynchronize(mixed->beside), "synchronize");
	check(cuEventSynchronize(mixed->before), "synchronize");
	require(cuEventQuery(mixed->after) == CUDA_ERROR_NOT_READY, "the event is done");
	require(cuStreamQuery(mixed->behind) == CUDA_ERROR_NOT_READY, "the stream is done");
	require(cuStreamQuery(mixed->joined) == CUDA_ERROR_NOT_READY, "the joined stream is done");
	require(cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY,
		"the legacy stream is done");
	require(!atomic_load(&mixed->called_count), "the host function has been called");
}

/* A graph launch behind the collective. It waits, so the others must be on their way. */
static void replay(struct mixed *mixed)
{
	CUgraph graph;
	CUgraphExec exec;

	check(cuStreamBeginCapture(mixed->beside, CU_STREAM_CAPTURE_MODE_RELAXED), "capture");
	launch(mixed, "mixed_replayed", mixed->beside);
	check(cuStreamEndCapture(mixed->beside, &graph), "capture");
	check(cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
	check(cuGraphLaunch(exec, mixed->behind), "graph launch");
	check(cuGraphExecDestroy(exec), "destroy");
	check(cuGraphDestroy(graph), "destroy");
}

void mixed_run(const struct model *model, bool is_late)
{
	struct mixed mixed = {0};
	float elapsed_ms;
	void *memory;

	check(cuMemAllocHost(&memory, BYTES), "allocate");
	check(cuModuleLoadData(&mixed.module, ptx), "module");
	check(cuStreamCreate(&mixed.behind, CU_STREAM_DEFAULT), "stream");
	check(cuStreamCreate(&mixed.joined, CU_STREAM_NON_BLOCKING), "stream");
	check(cuStreamCreate(&mixed.beside, CU_STREAM_NON_BLOCKING), "stream");
	check(cuEventCreate(&mixed.before, CU_EVENT_DEFAULT), "event");
	check(cuEventCreate(&mixed.after, CU_EVENT_DEFAULT), "event");
	if (is_late)
		await_marker();
	enqueue(&mixed, model, memory);
	if (!model->world.rank) {
		check_pending(&mixed);
		make_marker();
	}
	replay(&mixed);
	check(cuEventSynchronize(mixed.after), "synchronize");
	check(cuEventElapsedTime(&elapsed_ms, mixed.before, mixed.after), "elapsed time");
	require(elapsed_ms > 0, "no time elapsed");
	check(cuEventDestroy(mixed.after), "destroy");
	check(cuStreamDestroy(mixed.behind), "destroy");
	require(atomic_load(&mixed.called_count) == 1, "the host function has not been called");
	check(cuCtxSynchronize(), "synchronize");
}
