/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soak SECONDS LAUNCHES_A_SECOND PLUGIN...: simulates a long-running program.
 * - Some threads launch steadily from their own call paths.
 * - Threads start and end.
 * - Graphs are created, replayed and destroyed.
 * - Plugins are loaded, launch, and are unloaded.
 *
 * At the end it prints how often each function launched, one "NAME COUNT" per line.
 */
#include <cuda.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STEADY_THREADS 3
#define PLUGINS_MAX    8
#define BATCH	       20

static CUcontext context;
static CUfunction function;
static atomic_bool is_over;
static unsigned pause_us;
static atomic_ullong steady_counts[STEADY_THREADS], short_count, graph_count, plugin_count;
static unsigned long long plugin_counts[PLUGINS_MAX];

static void check(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, (int)result);
	exit(1);
}
#define CHECK(call) check((call), #call)

static void begin(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry kernel() { ret; }\n";
	CUmodule module;
	CUdevice device;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&function, module, "kernel"));
}

static void launch(CUstream stream)
{
	CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
	__asm__ volatile(""); /* prevents a tail call, which would drop this frame */
}

/* Called by the plugins. */
void device_launch(unsigned blocks);

__attribute__((visibility("default"))) void device_launch(unsigned blocks)
{
	CHECK(cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	__asm__ volatile("");
}

#define STEADY(number)                                                                             \
	__attribute__((noinline)) static void steady_##number(void)                                \
	{                                                                                          \
		for (int i = 0; i < BATCH; i++)                                                    \
			launch(NULL);                                                              \
		atomic_fetch_add(&steady_counts[number], BATCH);                                   \
		CHECK(cuCtxSynchronize());                                                         \
	}
STEADY(0)
STEADY(1)
STEADY(2)

static void *run_steady(void *work)
{
	CHECK(cuCtxSetCurrent(context));
	while (!is_over) {
		((void (*)(void))work)();
		usleep(pause_us);
	}
	return NULL;
}

__attribute__((noinline)) static void short_life(void)
{
	launch(NULL);
	atomic_fetch_add(&short_count, 1);
}

static void *live_shortly(void *unused)
{
	CHECK(cuCtxSetCurrent(context));
	short_life();
	return unused;
}

static void *start_threads(void *unused)
{
	while (!is_over) {
		pthread_t thread;

		if (!pthread_create(&thread, NULL, live_shortly, NULL))
			pthread_join(thread, NULL);
		usleep(5000);
	}
	return unused;
}

__attribute__((noinline)) static void replay_graph(CUstream stream)
{
	CUgraphExec exec;
	CUgraph graph;

	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch(stream);
	launch(stream);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 5; i++)
		CHECK(cuGraphLaunch(exec, stream));
	atomic_fetch_add(&graph_count, 10);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

static void *make_graphs(void *unused)
{
	CUstream stream;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	while (!is_over) {
		replay_graph(stream);
		usleep(20000);
	}
	return unused;
}

/* Some end at once, some stay for a while: the tracer may see them or not. */
static void churn(char **plugins, int count)
{
	for (unsigned turn = 0; !is_over; turn++) {
		int which = (int)(turn * 7 % (unsigned)count);
		void *plugin = dlopen(plugins[which], RTLD_NOW);
		void (*run)(unsigned) = plugin ? (void (*)(unsigned))dlsym(plugin, "run") : NULL;

		if (!run) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
		for (unsigned i = 0; i <= turn % 3; i++) {
			run(2);
			plugin_counts[which]++;
			atomic_fetch_add(&plugin_count, 1);
		}
		usleep(turn % 4 ? turn % 4 * 1000 : 10);
		dlclose(plugin);
	}
}

static void *end_in_time(void *seconds)
{
	struct timespec left = {(time_t)(long)seconds, 0};

	nanosleep(&left, NULL);
	is_over = true;
	return NULL;
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
	static void (*const steady[STEADY_THREADS])(void) = {steady_0, steady_1, steady_2};
	pthread_t threads[STEADY_THREADS + 3];
	int count = argc - 3;

	if (count < 1 || count > PLUGINS_MAX)
		return 2;
	pause_us = 1000000u * STEADY_THREADS * BATCH / (unsigned)(atoi(argv[2]) + 1);
	begin();
	for (int i = 0; i < STEADY_THREADS; i++)
		pthread_create(&threads[i], NULL, run_steady, (void *)steady[i]);
	pthread_create(&threads[STEADY_THREADS], NULL, start_threads, NULL);
	pthread_create(&threads[STEADY_THREADS + 1], NULL, make_graphs, NULL);
	pthread_create(&threads[STEADY_THREADS + 2], NULL, end_in_time, (void *)atol(argv[1]));
	churn(argv + 3, count);
	for (int i = 0; i < STEADY_THREADS + 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(cuCtxSynchronize());
	for (int i = 0; i < STEADY_THREADS; i++)
		printf("steady_%d %llu\n", i, steady_counts[i]);
	printf("short_life %llu\nreplay_graph %llu\n", short_count, graph_count);
	for (int i = 0; i < count; i++)
		printf("plugin %s %llu\n", name_of(argv[3 + i]), plugin_counts[i]);
	return 0;
}
