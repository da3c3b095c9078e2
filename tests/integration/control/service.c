/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service THREADS: a program that launches from several threads until its standard input ends. The
 * first thread replays a CUDA graph, the others launch one kernel after the other. A line on
 * standard input makes the main thread do something; it answers with a line.
 *
 *	push NAME, pop		an NVTX range
 *	start, end		a range that any thread may end
 *	launch			one kernel, by launch_from_main()
 *	capture			makes a graph with two kernels, in make_graph()
 *	replay			launches that graph
 *	fork			makes a child that does nothing
 *	fail, oom		a call that fails
 *	become ID		changes to the user and group of this number
 *	query			asks whether the GPU has finished, while it works
 *	alloc, free		allocates 1 MiB, or frees what was allocated last
 *	retry			an allocation that fails, a free, and an allocation that succeeds
 *	steps N MS		N iterations of a loop with three launches; the last one takes MS
 */
#include <cuda.h>

#include <grp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "integration/attribution/nvtx_client.h"

#define THREADS_MAX 16

static CUcontext context;
static CUfunction kernel;
static CUgraphExec made;
static atomic_bool ended;

static void check(CUresult result)
{
	if (result != CUDA_SUCCESS)
		exit(99);
}

static void launch(CUstream stream)
{
	check(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

__attribute__((noinline)) static void launch_from_main(CUstream stream)
{
	launch(stream);
	check(cuStreamSynchronize(stream));
}

__attribute__((noinline)) static CUgraphExec make_graph(CUstream stream)
{
	CUgraphExec exec;
	CUgraph graph;

	check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch(stream);
	launch(stream);
	check(cuStreamEndCapture(stream, &graph));
	check(cuGraphInstantiate(&exec, graph, 0));
	return exec;
}

static void *work(void *first)
{
	const struct timespec pause = {0, 20000};
	CUgraphExec graph = NULL;
	CUstream stream;

	check(cuCtxSetCurrent(context));
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (first)
		graph = make_graph(stream);
	for (unsigned i = 0; !atomic_load(&ended); i++) {
		if (first)
			check(cuGraphLaunch(graph, stream));
		else
			launch(stream);
		if (i % 16 == 0)
			check(cuStreamSynchronize(stream));
		nanosleep(&pause, NULL);
	}
	check(cuStreamSynchronize(stream));
	return NULL;
}

/* Ends when this process does. */
static void fork_child(void)
{
	int ends[2];

	if (pipe(ends))
		exit(97);
	if (fork()) {
		close(ends[0]);
		return;
	}
	close(ends[1]);
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	(void)!read(ends[0], ends, 1);
	_exit(0);
}

/* Like a server that opens its port as root. */
static void become(gid_t id)
{
	if (setgroups(0, NULL) || setgid(id) || setuid(id))
		exit(96);
}

/* Like PyTorch's allocator. The CUDA library of the simulation limits the memory. */
static void retry_allocation(void)
{
	CUdeviceptr cached, memory;

	check(cuMemAlloc(&cached, 4096));
	if (cuMemAlloc(&memory, (size_t)1 << 60) != CUDA_ERROR_OUT_OF_MEMORY)
		exit(96);
	check(cuCtxSynchronize());
	check(cuMemFree(cached));
	check(cuMemAlloc(&memory, 4096));
	check(cuMemFree(memory));
}

static void query(CUstream stream)
{
	/* On a busy machine the GPU may have finished before this thread asks. */
	for (int i = 0; i < 1000; i++) {
		launch(stream);
		if (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
			return;
	}
	exit(95);
}

__attribute__((noinline)) static void launch_head(CUstream stream)
{
	launch(stream);
	__asm__ volatile("");
}

__attribute__((noinline)) static void launch_layer(CUstream stream)
{
	launch(stream);
	__asm__ volatile("");
}

static void iterate(unsigned count, unsigned last_ms, CUstream stream)
{
	const struct timespec step = {0, 1000000}, last = {0, last_ms * 1000000l};

	for (unsigned i = 0; i < count; i++) {
		launch_head(stream);
		launch_layer(stream);
		nanosleep(i == count - 1 ? &last : &step, NULL);
		launch_layer(stream);
	}
}

static void act(const char *line, CUstream stream)
{
	static uint64_t started;
	static CUdeviceptr allocated;
	CUdeviceptr memory;
	unsigned count, last_ms;

	if (!strncmp(line, "push ", 5))
		nvtx_push_a(line + 5);
	else if (!strcmp(line, "pop"))
		nvtx_pop();
	else if (!strcmp(line, "start"))
		started = nvtx_start_a("started");
	else if (!strcmp(line, "end"))
		nvtx_end(started);
	else if (!strcmp(line, "launch"))
		launch_from_main(stream);
	else if (!strcmp(line, "capture"))
		made = make_graph(stream);
	else if (!strcmp(line, "replay"))
		check(cuGraphLaunch(made, stream));
	else if (!strcmp(line, "fork"))
		fork_child();
	else if (!strcmp(line, "fail"))
		cuLaunchKernel(kernel, 0, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	else if (!strncmp(line, "become ", 7))
		become((gid_t)atoi(line + 7));
	else if (!strcmp(line, "oom"))
		cuMemAlloc(&memory, (size_t)1 << 60);
	else if (!strcmp(line, "query"))
		query(stream);
	else if (!strcmp(line, "alloc"))
		check(cuMemAlloc(&allocated, 1 << 20));
	else if (!strcmp(line, "free"))
		check(cuMemFree(allocated));
	else if (!strcmp(line, "retry"))
		retry_allocation();
	else if (sscanf(line, "steps %u %u", &count, &last_ms) == 2)
		iterate(count, last_ms, stream);
	else
		exit(98);
}

int main(int argc, char **argv)
{
	int thread_count = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t threads[THREADS_MAX];
	CUmodule module;
	CUstream stream;
	CUdevice device;
	char line[256];

	nvtx_start();
	nvtx_push_a("before CUDA");
	check(cuInit(0));
	check(cuDeviceGet(&device, 0));
	check(cuDevicePrimaryCtxRetain(&context, device));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, ".version 7.0\n.target sm_70\n.address_size 64\n"
					".visible .entry kernel() { ret; }\n"));
	check(cuModuleGetFunction(&kernel, module, "kernel"));
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < thread_count && i < THREADS_MAX; i++)
		pthread_create(&threads[i], NULL, work, i ? NULL : &device);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		act(line, stream);
		puts("done");
		fflush(stdout);
	}
	atomic_store(&ended, true);
	for (int i = 0; i < thread_count && i < THREADS_MAX; i++)
		pthread_join(threads[i], NULL);
	check(cuStreamSynchronize(stream));
	return 0;
}
