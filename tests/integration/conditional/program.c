/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program KIND ITERATIONS REPLAYS KERNELS [THREADS]: builds two graphs, by capture and node by
 * node, launches each REPLAYS times, and prints "ok" with the number of launches. If a driver call
 * fails, it says so and exits with status 1. KIND:
 *
 *	while	a loop over KERNELS kernels
 *	nested	a loop over KERNELS kernels and a loop of two iterations over KERNELS kernels
 *	if	KERNELS kernels, unless ITERATIONS is 0
 *	switch	the body number ITERATIONS % 4 of three, with KERNELS kernels each
 *	child	a loop over a child graph with KERNELS kernels
 *	plain	KERNELS kernels without a condition
 *	mixed	the graphs of "plain" and "while" in turn, instantiated in this order. If
 *		ITERATIONS is 0, both are of "plain". Meanwhile each of THREADS other threads
 *		launches the plain graph and single kernels, and allocates memory.
 *	loads	like "mixed". After each wait, the threads load and unload code.
 *	pauses	the graph of "while". After each launch the program waits and sleeps for 70 ms.
 *
 *	tool	the graphs of "plain". Until a context exists, another thread uses XTRACE_CUPTI.
 *
 * "launching" is printed on stderr when the two graphs exist.
 * All graphs have a kernel before and one after that. Only the simulated GPU ends these loops,
 * because no kernel changes a condition.
 */
#include <cuda.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CALL(function, ...) check(function(__VA_ARGS__), #function)

enum { THREADS_MAX = 64, SYNC_PERIOD = 8, PAUSE_US = 70000, TOOL_US = 30000 };

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry before() { ret; }\n"
			  ".visible .entry in_body() { ret; }\n"
			  ".visible .entry in_inner_body() { ret; }\n"
			  ".visible .entry after() { ret; }\n"
			  ".visible .entry single() { ret; }\n";

static CUcontext context;
static CUfunction before, in_body, in_inner_body, after, single;
static unsigned int iterations;
static long replays, kernels;
static bool pauses, loads;
static _Atomic long launch_count;

/* A graph in the making: the next node follows `tip`. */
struct builder {
	CUgraph graph;
	CUgraphNode tip;
	CUstream capturing; /* NULL: node by node */
};

static void check(CUresult result, const char *function)
{
	const char *name = "an unknown error";

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorName(result, &name);
	fprintf(stderr, "%s failed: %s\n", function, name);
	exit(1);
}

static CUgraphNode last_node(CUgraph graph)
{
	size_t count = 0;
	CUgraphNode *nodes;
	CUgraphNode last;

	CALL(cuGraphGetNodes, graph, NULL, &count);
	nodes = calloc(count + 1, sizeof(*nodes));
	if (!nodes)
		exit(1);
	CALL(cuGraphGetNodes, graph, nodes, &count);
	last = count ? nodes[count - 1] : NULL;
	free(nodes);
	return last;
}

static __attribute__((noinline)) void capture_kernels(struct builder *builder, CUfunction function,
						      long count)
{
	CALL(cuStreamBeginCaptureToGraph, builder->capturing, builder->graph, &builder->tip, NULL,
	     builder->tip != NULL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	for (long i = 0; i < count; i++)
		CALL(cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, builder->capturing, NULL,
		     NULL);
	CALL(cuStreamEndCapture, builder->capturing, &builder->graph);
	builder->tip = last_node(builder->graph);
}

static __attribute__((noinline)) void add_kernel_nodes(struct builder *builder, CUfunction function,
						       long count)
{
	const CUDA_KERNEL_NODE_PARAMS params = {.func = function,
						.gridDimX = 1,
						.gridDimY = 1,
						.gridDimZ = 1,
						.blockDimX = 32,
						.blockDimY = 1,
						.blockDimZ = 1};

	for (long i = 0; i < count; i++) {
		CUgraphNode tip = builder->tip;

		CALL(cuGraphAddKernelNode, &builder->tip, builder->graph, &tip, tip != NULL,
		     &params);
	}
}

static void add_kernels(struct builder *builder, CUfunction function, long count)
{
	if (builder->capturing)
		capture_kernels(builder, function, count);
	else
		add_kernel_nodes(builder, function, count);
}

/* Returns the bodies, in the driver's memory. */
static CUgraph *add_condition(struct builder *builder, CUgraphConditionalNodeType type,
			      unsigned int size, unsigned int value)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphNode tip = builder->tip;

	params.conditional.type = type;
	params.conditional.size = size;
	params.conditional.ctx = context;
	CALL(cuGraphConditionalHandleCreate, &params.conditional.handle, builder->graph, context,
	     value, CU_GRAPH_COND_ASSIGN_DEFAULT);
	CALL(cuGraphAddNode, &builder->tip, builder->graph, &tip, NULL, tip != NULL, &params);
	return params.conditional.phGraph_out;
}

static struct builder enter(const struct builder *outer, CUgraph body)
{
	return (struct builder){body, NULL, outer->capturing};
}

static void add_plain(struct builder *root)
{
	add_kernels(root, in_body, kernels);
}

static void add_while(struct builder *root)
{
	struct builder body =
		enter(root, *add_condition(root, CU_GRAPH_COND_TYPE_WHILE, 1, iterations));

	add_kernels(&body, in_body, kernels);
}

static void add_nested(struct builder *root)
{
	struct builder body =
		enter(root, *add_condition(root, CU_GRAPH_COND_TYPE_WHILE, 1, iterations));
	struct builder inner;

	add_kernels(&body, in_body, kernels);
	inner = enter(&body, *add_condition(&body, CU_GRAPH_COND_TYPE_WHILE, 1, 2));
	add_kernels(&inner, in_inner_body, kernels);
}

static void add_if(struct builder *root)
{
	struct builder body =
		enter(root, *add_condition(root, CU_GRAPH_COND_TYPE_IF, 1, iterations));

	add_kernels(&body, in_body, kernels);
}

static void add_switch(struct builder *root)
{
	CUgraph *bodies = add_condition(root, CU_GRAPH_COND_TYPE_SWITCH, 3, iterations % 4);

	for (int i = 0; i < 3; i++) {
		struct builder body = enter(root, bodies[i]);

		add_kernels(&body, in_body, kernels);
	}
}

static void add_child(struct builder *root)
{
	struct builder body =
		enter(root, *add_condition(root, CU_GRAPH_COND_TYPE_WHILE, 1, iterations));
	struct builder child = {NULL, NULL, root->capturing};

	CALL(cuGraphCreate, &child.graph, 0);
	add_kernels(&child, in_body, kernels);
	CALL(cuGraphAddChildGraphNode, &body.tip, body.graph, NULL, 0, child.graph);
	CALL(cuGraphDestroy, child.graph);
}

static CUgraph build(void (*add)(struct builder *root), CUstream capturing)
{
	struct builder builder = {NULL, NULL, capturing};

	CALL(cuGraphCreate, &builder.graph, 0);
	add_kernels(&builder, before, 1);
	add(&builder);
	add_kernels(&builder, after, 1);
	return builder.graph;
}

static __attribute__((noinline)) void launch_graph(CUgraphExec exec, CUstream stream)
{
	CALL(cuGraphLaunch, exec, stream);
	launch_count++;
}

static __attribute__((noinline)) void launch_single(CUstream stream)
{
	CALL(cuLaunchKernel, single, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	launch_count++;
}

/* A pair of executable graphs that is launched in turn. */
static void launch_pair(CUgraphExec first, CUgraphExec second, CUstream stream)
{
	for (long i = 0; i < replays; i++) {
		launch_graph(first, stream);
		launch_graph(second, stream);
		if (i % SYNC_PERIOD == 0 || pauses)
			CALL(cuStreamSynchronize, stream);
		if (pauses)
			usleep(PAUSE_US);
	}
	CALL(cuStreamSynchronize, stream);
}

static void destroy(CUgraphExec exec, CUgraph graph)
{
	CALL(cuGraphExecDestroy, exec);
	CALL(cuGraphDestroy, graph);
}

static void run(void (*add_first)(struct builder *root), void (*add_second)(struct builder *root))
{
	CUgraph graphs[2];
	CUgraphExec execs[2];
	CUstream stream;

	CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	graphs[0] = build(add_first, stream);
	CALL(cuGraphInstantiate, &execs[0], graphs[0], 0);
	graphs[1] = build(add_second, NULL);
	CALL(cuGraphInstantiate, &execs[1], graphs[1], 0);
	fprintf(stderr, "launching\n");
	launch_pair(execs[0], execs[1], stream);
	for (int i = 0; i < 2; i++)
		destroy(execs[i], graphs[i]);
	CALL(cuStreamDestroy, stream);
}

static void *run_beside(void *unused)
{
	CUdeviceptr memory;
	CUgraphExec exec;
	CUstream stream;
	CUmodule module;
	CUgraph graph;

	CALL(cuCtxSetCurrent, context);
	CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	graph = build(add_plain, stream);
	CALL(cuGraphInstantiate, &exec, graph, 0);
	for (long i = 0; i < replays; i++) {
		launch_graph(exec, stream);
		launch_single(stream);
		if (i % SYNC_PERIOD)
			continue;
		CALL(cuStreamSynchronize, stream);
		CALL(cuMemAlloc, &memory, 1000);
		CALL(cuMemFree, memory);
		if (loads) {
			CALL(cuModuleLoadData, &module, ptx);
			CALL(cuModuleUnload, module);
		}
	}
	CALL(cuStreamSynchronize, stream);
	destroy(exec, graph);
	CALL(cuStreamDestroy, stream);
	return unused;
}

static void run_mixed(int thread_count)
{
	pthread_t threads[THREADS_MAX];

	for (int i = 0; i < thread_count; i++)
		if (pthread_create(&threads[i], NULL, run_beside, NULL))
			exit(1);
	run(add_plain, iterations ? add_while : add_plain);
	for (int i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
}

static void free_other(CUstream stream)
{
	CUdeviceptr other;

	CALL(cuMemAlloc, &other, 1000);
	CALL(cuMemFreeAsync, other, stream);
}

/* Frees of memory from a pool, and of other memory at the end and after each ITERATIONS of them. */
static void run_frees(int unused)
{
	CUdeviceptr pooled;
	CUstream stream;

	(void)unused;
	CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	for (long i = 0; i < replays; i++) {
		CALL(cuMemAllocAsync, &pooled, 1000, stream);
		CALL(cuMemFreeAsync, pooled, stream);
		if (iterations && i % iterations == 0)
			free_other(stream);
	}
	launch_single(stream);
	free_other(stream);
	launch_single(stream);
	CALL(cuStreamSynchronize, stream);
	CALL(cuStreamDestroy, stream);
}

static const struct {
	const char *name;
	void (*add)(struct builder *root);
	void (*run)(int thread_count); /* if there is no `add` */
} kinds[] = {
	{.name = "while", .add = add_while},  {.name = "nested", .add = add_nested},
	{.name = "if", .add = add_if},	      {.name = "switch", .add = add_switch},
	{.name = "child", .add = add_child},  {.name = "plain", .add = add_plain},
	{.name = "mixed", .run = run_mixed},  {.name = "frees", .run = run_frees},
	{.name = "pauses", .add = add_while}, {.name = "tool", .add = add_plain},
	{.name = "loads", .run = run_mixed},
};

static void start(void)
{
	CUmodule module;
	CUdevice device;

	CALL(cuInit, 0);
	CALL(cuDeviceGet, &device, 0);
	CALL(cuDevicePrimaryCtxRetain, &context, device);
	CALL(cuCtxSetCurrent, context);
	CALL(cuModuleLoadData, &module, ptx);
	CALL(cuModuleGetFunction, &before, module, "before");
	CALL(cuModuleGetFunction, &in_body, module, "in_body");
	CALL(cuModuleGetFunction, &in_inner_body, module, "in_inner_body");
	CALL(cuModuleGetFunction, &after, module, "after");
	CALL(cuModuleGetFunction, &single, module, "single");
}

static _Atomic bool has_started;

/* Another tool, which uses CUPTI again and again until the program has a context. */
static void *use_cupti(void *library)
{
	int (*subscribe)(void **, void (*)(void), void *);
	int (*unsubscribe)(void *);
	void *subscriber;

	while (!has_started) {
		usleep(TOOL_US);
		*(void **)&subscribe = dlsym(library, "cuptiSubscribe");
		*(void **)&unsubscribe = dlsym(library, "cuptiUnsubscribe");
		if (!subscribe(&subscriber, (void (*)(void))abort, NULL))
			unsubscribe(subscriber);
	}
	return library;
}

static void start_beside_tool(void)
{
	void *library = dlopen(getenv("XTRACE_CUPTI"), RTLD_NOW);
	pthread_t tool;

	if (!library || pthread_create(&tool, NULL, use_cupti, library))
		exit(1);
	start();
	has_started = true;
	pthread_join(tool, NULL);
}

int main(int argc, char **argv)
{
	int thread_count = argc > 5 ? atoi(argv[5]) : 0;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* for xtrace attach */
	for (size_t i = 0; argc > 4 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, argv[1]))
			continue;
		iterations = (unsigned int)strtoul(argv[2], NULL, 10);
		replays = strtol(argv[3], NULL, 10);
		kernels = strtol(argv[4], NULL, 10);
		pauses = !strcmp(argv[1], "pauses");
		loads = !strcmp(argv[1], "loads");
		if (strcmp(argv[1], "tool"))
			start();
		else
			start_beside_tool();
		if (kinds[i].add)
			run(kinds[i].add, kinds[i].add);
		else
			kinds[i].run(thread_count < THREADS_MAX ? thread_count : THREADS_MAX);
		printf("ok %ld\n", launch_count);
		return 0;
	}
	fprintf(stderr, "usage: %s KIND ITERATIONS REPLAYS KERNELS [THREADS]\n", argv[0]);
	return 2;
}
