/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins SEED THREADS LOADS MICROSECONDS KILL PLUGIN...: each thread loads plugins one after the
 * other, in random order, and never two at a time. A loaded plugin launches its kernel one to seven
 * times and stays for MICROSECONDS. Each plugin has its own kernel and belongs to one thread. At
 * the end, the program prints how often each kernel was launched and how many addresses the plugins
 * had. With KILL, it kills itself before half of the work is done.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNELS	 8
#define PLACES	 4096
#define THREADS	 8
#define ENTRY(n) ".visible .entry k" #n "() { ret; }\n"

static const char code[] = ".version 7.0\n.target sm_50\n.address_size 64\n" ENTRY(0) ENTRY(1)
	ENTRY(2) ENTRY(3) ENTRY(4) ENTRY(5) ENTRY(6) ENTRY(7);

static CUfunction kernels[KERNELS];
static atomic_uint counts[KERNELS];
static CUcontext context;
static char **plugins;
static unsigned plugin_count, thread_count, load_count, seed;
static useconds_t stay_us;
static int is_killed;
static atomic_uint loads_done;

static void check(int is_right, const char *what)
{
	if (is_right)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

void plugin_launch(unsigned kernel)
{
	check(!cuLaunchKernel(kernels[kernel], 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "launch");
	counts[kernel]++;
	__asm__ volatile(""); /* prevents a tail call, which would drop this frame */
}

static void load(const char *path, unsigned launches)
{
	void *plugin = dlopen(path, RTLD_NOW);
	void (*run)(void) = plugin ? (void (*)(void))dlsym(plugin, "run") : NULL;

	check(run != NULL, "the plugin has no function");
	for (unsigned n = 0; n < launches; n++)
		run();
	if (stay_us)
		usleep(stay_us);
	dlclose(plugin);
}

static void *work(void *number)
{
	unsigned thread = (unsigned)(size_t)number;
	unsigned drawn = seed * 2654435761u + thread + 1, of_thread = plugin_count / thread_count;

	check(!cuCtxSetCurrent(context), "context");
	for (unsigned i = 0; i < load_count; i++) {
		drawn = drawn * 1664525u + 1013904223u;
		load(plugins[thread * of_thread + (drawn >> 16) % of_thread], 1 + drawn % 7);
		if (is_killed && ++loads_done == load_count * thread_count / 2)
			kill(getpid(), SIGKILL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	CUdevice device;
	CUmodule module;
	char name[8];

	check(argc > 6, "plugins SEED THREADS LOADS MICROSECONDS KILL PLUGIN...");
	seed = (unsigned)atoi(argv[1]);
	thread_count = (unsigned)atoi(argv[2]);
	load_count = (unsigned)atoi(argv[3]);
	stay_us = (useconds_t)atoi(argv[4]);
	is_killed = atoi(argv[5]);
	plugins = argv + 6;
	plugin_count = (unsigned)argc - 6;
	check(thread_count && thread_count <= THREADS && thread_count <= plugin_count, "threads");
	check(!cuInit(0) && !cuDeviceGet(&device, 0) &&
		      !cuDevicePrimaryCtxRetain(&context, device) && !cuCtxSetCurrent(context) &&
		      !cuModuleLoadData(&module, code),
	      "no device");
	for (unsigned k = 0; k < KERNELS; k++) {
		snprintf(name, sizeof(name), "k%u", k);
		check(!cuModuleGetFunction(&kernels[k], module, name), "no kernel");
	}
	for (unsigned t = 0; t < thread_count; t++)
		check(!pthread_create(&threads[t], NULL, work, (void *)(size_t)t), "thread");
	for (unsigned t = 0; t < thread_count; t++)
		pthread_join(threads[t], NULL);
	check(!cuCtxSynchronize(), "synchronize");
	for (unsigned k = 0; k < KERNELS; k++)
		printf("k%u %u\n", k, counts[k]);
	return 0;
}
