/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program ROUNDS PLUGIN: uses everything that the tracer handles. These are launches of two
 * threads, copies, memsets, allocations, a graph, NVTX, and a plugin that is loaded and unloaded.
 *
 * Prints its results and what it observes about its process. The output must not depend on the
 * tracer or on errors in the tracer.
 */
#include <cuda.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../attribution/nvtx_client.h"

#define EXIT_STATUS 7

static CUcontext context;
static CUfunction function;
static unsigned failures, odd_errnos;
static unsigned rounds;

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry kernel() { ret; }\n";

/* No call may fail or change errno. */
#define CU(call)                                                                                   \
	do {                                                                                       \
		errno = 4711;                                                                      \
		failures += (call) != CUDA_SUCCESS;                                                \
		odd_errnos += errno != 4711;                                                       \
	} while (0)

__attribute__((noinline)) static void launch(CUstream stream)
{
	CU(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

static void begin(void)
{
	CUmodule module;
	CUdevice device;

	failures += cuInit(0) != CUDA_SUCCESS;
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoadData(&module, ptx));
	CU(cuModuleGetFunction(&function, module, "kernel"));
}

static void move_memory(void)
{
	char bytes[256] = "to and fro";
	CUdeviceptr memory;

	CU(cuMemAlloc(&memory, sizeof(bytes)));
	CU(cuMemcpyHtoD(memory, bytes, sizeof(bytes)));
	CU(cuMemsetD8(memory + 4, 'x', 3));
	CU(cuMemcpyDtoH(bytes, memory, sizeof(bytes)));
	CU(cuMemFree(memory));
	printf("%s\n", bytes);
}

static void replay_graph(void)
{
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch(stream);
	launch(stream);
	CU(cuStreamEndCapture(stream, &graph));
	CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (unsigned i = 0; i < rounds / 10; i++)
		CU(cuGraphLaunch(exec, stream));
	CU(cuStreamSynchronize(stream));
	CU(cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(graph));
	CU(cuStreamDestroy(stream));
}

static void *work_in_thread(void *unused)
{
	CU(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < rounds; i++) {
		nvtx_push_a("step");
		launch(NULL);
		nvtx_pop();
	}
	CU(cuCtxSynchronize());
	return unused;
}

/* The plugin launches nothing; only loading and unloading matters. */
static void load_and_launch(const char *plugin)
{
	for (unsigned i = 0; i < 3; i++) {
		void *library = dlopen(plugin, RTLD_NOW);

		failures += !library;
		launch(NULL);
		if (library)
			dlclose(library);
		launch(NULL);
	}
}

static unsigned count_descriptors(void)
{
	const char *data = getenv("XTRACE_DATA");
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned count = 0;
	char target[4096];

	while (folder && (entry = readdir(folder))) {
		ssize_t length =
			readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		/* libunwind opens a pipe. */
		count += length > 0 && (!data || strncmp(target, data, strlen(data)) != 0) &&
			 atoi(entry->d_name) <= STDERR_FILENO;
	}
	closedir(folder);
	return count;
}

static unsigned count_blocked_signals(void)
{
	unsigned count = 0;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (int i = 1; i < 65; i++)
		count += sigismember(&mask, i) == 1;
	return count;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	if (argc < 3)
		return 2;
	rounds = (unsigned)atoi(argv[1]);
	nvtx_start();
	begin();
	move_memory();
	for (unsigned i = 0; i < rounds; i++)
		launch(NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work_in_thread, NULL);
	replay_graph();
	load_and_launch(argv[2]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	usleep(30000); /* by now, the log contains the loading and unloading */
	load_and_launch(argv[2]);
	CU(cuCtxSynchronize());
	printf("%u failures, %u odd errnos, %u descriptors, %u signals blocked\n", failures,
	       odd_errnos, count_descriptors(), count_blocked_signals());
	return EXIT_STATUS;
}
