// SPDX-License-Identifier: Apache-2.0
/*
 * Launches CUDA graphs that decide on the GPU what runs. tests/gpu/conditional.py runs it.
 *
 * Usage: conditional KIND ITERATIONS LAUNCHES KERNELS [SECONDS [THREADS]]
 *
 * plain        KERNELS kernels and no decision
 * while        a loop of ITERATIONS with KERNELS kernels in its body
 * nested       an if node in the body of the loop
 * child        a child graph in the body of the loop
 * if, switch   one body of KERNELS kernels
 * tail         the graph launches itself again, ITERATIONS times
 * forget       a kernel launches another graph of KERNELS kernels (fire and forget)
 * dynamic      no graph: a kernel launches ITERATIONS kernels (dynamic parallelism)
 *
 * Each kind is launched LAUNCHES times, between ordinary kernels and graphs. With SECONDS, this is
 * repeated for that time, with the same graph. Meanwhile, each of THREADS launches an ordinary one.
 * Every second thread makes a new one by capture after every 50 launches, and loads code.
 *
 * "launching PID" is printed when the graphs exist. At the end, the number of kernels that ran is
 * compared with the expected number. The time of the launches on the GPU is printed, as measured
 * with events.
 */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <unistd.h>

typedef unsigned long long count_t;

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t error = (call);                                                        \
		if (error != cudaSuccess) {                                                        \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(error));               \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static const int PLAIN_KERNELS = 5, BRANCHES = 4;

__global__ void body(count_t *ran)
{
	atomicAdd(ran, 1);
}

__global__ void plain(count_t *ran)
{
	atomicAdd(ran, 1);
}

__global__ void set_left(int *left, int iterations)
{
	*left = iterations;
}

__global__ void decide(int *left, cudaGraphConditionalHandle loop)
{
	cudaGraphSetConditional(loop, --*left > 0);
}

__global__ void again(int *left)
{
	if (--*left > 0)
		cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

__global__ void forget(cudaGraphExec_t graph)
{
	cudaGraphLaunch(graph, cudaStreamGraphFireAndForget);
}

__global__ void parent(count_t *ran, int times)
{
	for (int i = 0; i < times; i++)
		body<<<1, 1>>>(ran);
}

struct Shape {
	const char *kind;
	int iterations, kernels;
};

static cudaStream_t stream;
static count_t *ran, *plain_ran;
static int *left;

static bool is(const Shape &shape, const char *kind)
{
	return strcmp(shape.kind, kind) == 0;
}

// Captures the kernels of a body. at_end: the loop whose next iteration the last kernel decides.
static void capture(cudaGraph_t graph, int kernels, const cudaGraphConditionalHandle *at_end)
{
	CHECK(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
					    cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < kernels; i++)
		body<<<1, 1, 0, stream>>>(ran);
	if (at_end)
		decide<<<1, 1, 0, stream>>>(left, *at_end);
	CHECK(cudaStreamEndCapture(stream, &graph));
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t *after, void *function,
				  void **arguments)
{
	cudaGraphNode_t node;
	cudaKernelNodeParams kernel = {};

	kernel.func = function;
	kernel.gridDim = kernel.blockDim = dim3(1);
	kernel.kernelParams = arguments;
	CHECK(cudaGraphAddKernelNode(&node, graph, after, after != nullptr, &kernel));
	return node;
}

static cudaGraphNode_t add_set_left(cudaGraph_t graph, int iterations)
{
	void *arguments[] = {&left, &iterations};
	return add_kernel(graph, nullptr, (void *)set_left, arguments);
}

static cudaGraphConditionalHandle handle_of(cudaGraph_t graph)
{
	cudaGraphConditionalHandle handle;
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	return handle;
}

// Adds a conditional node. Returns its bodies.
static std::vector<cudaGraph_t> add_conditional(cudaGraph_t graph, cudaGraphNode_t after,
						cudaGraphConditionalHandle handle,
						cudaGraphConditionalNodeType type, int bodies)
{
	cudaGraphNode_t node;
	cudaGraphNodeParams params = {};

	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = bodies;
	CHECK(cudaGraphAddNode(&node, graph, &after, nullptr, 1, &params));
	return std::vector<cudaGraph_t>(params.conditional.phGraph_out,
					params.conditional.phGraph_out + bodies);
}

static void add_loop(cudaGraph_t graph, const Shape &shape)
{
	cudaGraphConditionalHandle loop = handle_of(graph);
	cudaGraph_t loop_body = add_conditional(graph, add_set_left(graph, shape.iterations), loop,
						cudaGraphCondTypeWhile, 1)[0];
	void *arguments[] = {&left, &loop};
	cudaGraphNode_t node;

	if (is(shape, "nested")) {
		node = add_kernel(loop_body, nullptr, (void *)decide, arguments);
		capture(add_conditional(loop_body, node, handle_of(loop_body), cudaGraphCondTypeIf,
					1)[0],
			shape.kernels, nullptr);
	} else if (is(shape, "child")) {
		cudaGraph_t child;
		CHECK(cudaGraphCreate(&child, 0));
		capture(child, shape.kernels, nullptr);
		CHECK(cudaGraphAddChildGraphNode(&node, loop_body, nullptr, 0, child));
		add_kernel(loop_body, &node, (void *)decide, arguments);
	} else {
		capture(loop_body, shape.kernels, &loop);
	}
}

static void add_branches(cudaGraph_t graph, const Shape &shape)
{
	bool is_if = is(shape, "if");
	for (cudaGraph_t branch : add_conditional(
		     graph, add_set_left(graph, 0), handle_of(graph),
		     is_if ? cudaGraphCondTypeIf : cudaGraphCondTypeSwitch, is_if ? 1 : BRANCHES))
		capture(branch, shape.kernels, nullptr);
}

static cudaGraphExec_t instantiate_for_device(cudaGraph_t graph)
{
	cudaGraphExec_t exec;
	CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
	CHECK(cudaGraphUpload(exec, stream));
	return exec;
}

// Captures the kernels, and one more that launches this graph again.
static cudaGraphExec_t make_tail(cudaGraph_t graph, const Shape &shape)
{
	CHECK(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
					    cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < shape.kernels; i++)
		body<<<1, 1, 0, stream>>>(ran);
	again<<<1, 1, 0, stream>>>(left);
	CHECK(cudaStreamEndCapture(stream, &graph));
	return instantiate_for_device(graph);
}

static cudaGraphExec_t make(const Shape &shape)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaGraphCreate(&graph, 0));
	if (is(shape, "tail"))
		return make_tail(graph, shape);
	if (is(shape, "forget")) {
		cudaGraph_t forgotten;
		CHECK(cudaGraphCreate(&forgotten, 0));
		capture(forgotten, shape.kernels, nullptr);
		exec = instantiate_for_device(forgotten);
		void *arguments[] = {&exec};
		add_kernel(graph, nullptr, (void *)forget, arguments);
	} else if (is(shape, "plain")) {
		capture(graph, shape.kernels, nullptr);
	} else if (is(shape, "if") || is(shape, "switch")) {
		add_branches(graph, shape);
	} else {
		add_loop(graph, shape);
	}
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	return exec;
}

// The number of kernels named "body" of one launch.
static count_t expected_of(const Shape &shape)
{
	count_t iterations = shape.iterations, kernels = shape.kernels;

	if (is(shape, "dynamic"))
		return iterations;
	if (is(shape, "while") || is(shape, "nested") || is(shape, "child") || is(shape, "tail"))
		return iterations * kernels;
	return kernels;
}

static cudaGraphExec_t make_plain(cudaStream_t where)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamBeginCapture(where, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < PLAIN_KERNELS; i++)
		plain<<<1, 1, 0, where>>>(plain_ran);
	CHECK(cudaStreamEndCapture(where, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	return exec;
}

static void load_code(cudaStream_t where)
{
	static const char text[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
				   ".visible .entry loaded() { ret; }\n";
	cudaLibrary_t library;
	cudaKernel_t kernel;

	CHECK(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
	CHECK(cudaLibraryGetKernel(&kernel, library, "loaded"));
	CHECK(cudaLaunchKernel((const void *)kernel, 1, 1, nullptr, 0, where));
	CHECK(cudaStreamSynchronize(where));
	CHECK(cudaLibraryUnload(library));
}

// makes_graphs: launches a new graph each time.
static void launch_plain(std::atomic<bool> *is_over, bool makes_graphs)
{
	cudaStream_t own;
	cudaGraphExec_t exec;

	CHECK(cudaStreamCreate(&own));
	exec = make_plain(own);
	while (!*is_over) {
		for (int i = 0; i < 50; i++)
			CHECK(cudaGraphLaunch(exec, own));
		CHECK(cudaStreamSynchronize(own));
		if (makes_graphs) {
			CHECK(cudaGraphExecDestroy(exec));
			exec = make_plain(own);
			load_code(own);
		}
	}
}

// Launches all once. Returns the milliseconds of the GPU.
static float launch_all(const Shape &shape, cudaGraphExec_t exec, cudaGraphExec_t ordinary,
			int launches, cudaEvent_t begin, cudaEvent_t end)
{
	float sum_ms = 0, ms;

	for (int i = 0; i < launches; i++) {
		if (is(shape, "tail"))
			set_left<<<1, 1, 0, stream>>>(left, shape.iterations);
		CHECK(cudaEventRecord(begin, stream));
		if (is(shape, "dynamic"))
			parent<<<1, 1, 0, stream>>>(ran, shape.iterations);
		else
			CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaEventRecord(end, stream));
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaEventElapsedTime(&ms, begin, end));
		sum_ms += ms;
		CHECK(cudaGraphLaunch(ordinary, stream));
		plain<<<1, 1, 0, stream>>>(plain_ran);
	}
	CHECK(cudaStreamSynchronize(stream));
	return sum_ms;
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: conditional KIND ITERATIONS LAUNCHES KERNELS "
				"[SECONDS [THREADS]]\n");
		return 2;
	}
	Shape shape = {argv[1], atoi(argv[2]), atoi(argv[4])};
	int launches = atoi(argv[3]);
	double seconds = argc > 5 ? atof(argv[5]) : 0, sum_ms = 0;
	count_t rounds = 0, got;
	cudaEvent_t begin, end;
	std::atomic<bool> is_over{false};
	std::vector<std::thread> threads;

	CHECK(cudaMalloc(&ran, sizeof(*ran)));
	CHECK(cudaMalloc(&plain_ran, sizeof(*plain_ran)));
	CHECK(cudaMalloc(&left, sizeof(*left)));
	CHECK(cudaMemset(ran, 0, sizeof(*ran)));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	cudaGraphExec_t ordinary = make_plain(stream);
	cudaGraphExec_t exec = is(shape, "dynamic") ? nullptr : make(shape);
	for (int i = 0; i < (argc > 6 ? atoi(argv[6]) : 0); i++)
		threads.emplace_back(launch_plain, &is_over, i % 2);
	CHECK(cudaStreamSynchronize(stream));
	fprintf(stderr, "launching %d\n", getpid());
	auto start = std::chrono::steady_clock::now();
	do {
		sum_ms += launch_all(shape, exec, ordinary, launches, begin, end);
		rounds++;
	} while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
		 seconds);
	is_over = true;
	for (std::thread &thread : threads)
		thread.join();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(&got, ran, sizeof(got), cudaMemcpyDeviceToHost));
	printf("%s launches %llu gpu_ms %.3f\n",
	       got == expected_of(shape) * launches * rounds ? "ok" : "WRONG", launches * rounds,
	       sum_ms);
	return got != expected_of(shape) * launches * rounds;
}
