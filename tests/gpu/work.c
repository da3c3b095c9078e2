/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All kinds of GPU work from C, for a real GPU: explicit graphs with child graphs, clones and
 * updates, stream capture, copies between pageable, pinned and device memory and between devices,
 * sets, pools, several streams, NVTX. tools/gpu-check.sh builds and records it where there is a
 * CUDA toolkit. Every kind of work is asked for by a function that is named after it.
 */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
#define nvtxRangePushA(text)
#define nvtxRangePop()
#endif

#define BYTES	     (1u << 20)
#define REPLAYS	     20
#define CHECK(call)  check((call), #call)
#define PART	     static __attribute__((noinline)) void
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static const char ptx[] = ".version 7.0\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry first() { ret; }\n"
			  ".visible .entry second() { ret; }\n"
			  ".visible .entry in_child() { ret; }\n"
			  ".visible .entry captured() { ret; }\n"
			  ".visible .entry updated() { ret; }\n";

static struct {
	CUcontext context;
	CUmodule module;
	CUstream streams[3];
	CUdeviceptr device_memory, other_memory;
	char *pinned, *pageable;
} gpu;

static void check(CUresult result, const char *call)
{
	const char *text = "unknown";

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorString(result, &text);
	fprintf(stderr, "%s: %s\n", call, text);
	exit(1);
}

static CUfunction function(const char *name)
{
	CUfunction found;

	CHECK(cuModuleGetFunction(&found, gpu.module, name));
	return found;
}

static CUDA_KERNEL_NODE_PARAMS kernel_params(const char *name, unsigned blocks)
{
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = function(name),
		.gridDimX = blocks,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
	};
}

static __attribute__((noinline)) CUgraphNode add_kernel(CUgraph graph, const CUgraphNode *after,
							const char *name)
{
	CUDA_KERNEL_NODE_PARAMS params = kernel_params(name, 4);
	CUgraphNode node;

	CHECK(cuGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &params));
	return node;
}

static __attribute__((noinline)) CUgraphNode add_copy(CUgraph graph, CUgraphNode after)
{
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = gpu.pinned,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = gpu.device_memory,
		.WidthInBytes = BYTES,
		.Height = 1,
		.Depth = 1,
	};
	CUgraphNode node;

	CHECK(cuGraphAddMemcpyNode(&node, graph, &after, 1, &copy, gpu.context));
	return node;
}

static __attribute__((noinline)) CUgraphNode add_set(CUgraph graph, CUgraphNode after)
{
	CUDA_MEMSET_NODE_PARAMS set = {
		.dst = gpu.other_memory,
		.value = 1,
		.elementSize = 1,
		.width = BYTES,
		.height = 1,
	};
	CUgraphNode node;

	CHECK(cuGraphAddMemsetNode(&node, graph, &after, 1, &set, gpu.context));
	return node;
}

static __attribute__((noinline)) CUgraphNode add_child(CUgraph graph, CUgraphNode after)
{
	CUgraphNode node, first;
	CUgraph child;

	CHECK(cuGraphCreate(&child, 0));
	first = add_kernel(child, NULL, "in_child");
	add_kernel(child, &first, "in_child");
	CHECK(cuGraphAddChildGraphNode(&node, graph, &after, 1, child));
	CHECK(cuGraphDestroy(child));
	return node;
}

static __attribute__((noinline)) CUgraph build_graph(CUgraphNode *updatable)
{
	CUgraphNode node;
	CUgraph graph;

	CHECK(cuGraphCreate(&graph, 0));
	node = add_kernel(graph, NULL, "first");
	node = add_copy(graph, node);
	node = add_set(graph, node);
	node = add_child(graph, node);
	*updatable = add_kernel(graph, &node, "second");
	return graph;
}

PART replay(CUgraphExec exec, CUstream stream, int times)
{
	for (int i = 0; i < times; i++)
		CHECK(cuGraphLaunch(exec, stream));
	KEEP_FRAME();
}

PART explicit_graph(void)
{
	CUDA_KERNEL_NODE_PARAMS params = kernel_params("updated", 8);
	CUgraphExec exec, clone_exec;
	CUgraphNode updatable;
	CUgraph graph, clone;

	graph = build_graph(&updatable);
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	replay(exec, gpu.streams[0], REPLAYS);
	CHECK(cuGraphExecKernelNodeSetParams(exec, updatable, &params));
	replay(exec, gpu.streams[1], REPLAYS);
	CHECK(cuGraphClone(&clone, graph));
	CHECK(cuGraphInstantiate(&clone_exec, clone, 0));
	replay(clone_exec, gpu.streams[2], REPLAYS);
	CHECK(cuCtxSynchronize());
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphExecDestroy(clone_exec));
	CHECK(cuGraphDestroy(clone));
	CHECK(cuGraphDestroy(graph));
}

PART launch(CUstream stream, const char *name)
{
	CHECK(cuLaunchKernel(function(name), 2, 1, 1, 64, 1, 1, 0, stream, NULL, NULL));
	KEEP_FRAME();
}

PART captured_graph(void)
{
	CUgraphExec exec;
	CUgraph graph;

	CHECK(cuStreamBeginCapture(gpu.streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (int i = 0; i < 5; i++)
		launch(gpu.streams[0], "captured");
	CHECK(cuMemcpyHtoDAsync(gpu.device_memory, gpu.pinned, BYTES, gpu.streams[0]));
	CHECK(cuMemsetD8Async(gpu.other_memory, 7, BYTES, gpu.streams[0]));
	CHECK(cuStreamEndCapture(gpu.streams[0], &graph));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	replay(exec, gpu.streams[0], REPLAYS);
	CHECK(cuStreamSynchronize(gpu.streams[0]));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

PART copies(void)
{
	for (int i = 0; i < 10; i++) {
		CHECK(cuMemcpyHtoD(gpu.device_memory, gpu.pageable, BYTES));
		CHECK(cuMemcpyDtoH(gpu.pageable, gpu.device_memory, BYTES));
		CHECK(cuMemcpyHtoDAsync(gpu.device_memory, gpu.pinned, BYTES, gpu.streams[1]));
		CHECK(cuMemcpyDtoHAsync(gpu.pinned, gpu.device_memory, BYTES, gpu.streams[1]));
		CHECK(cuMemcpyDtoDAsync(gpu.other_memory, gpu.device_memory, BYTES,
					gpu.streams[2]));
		CHECK(cuMemsetD32Async(gpu.other_memory, 3, BYTES / 4, gpu.streams[2]));
	}
	CHECK(cuCtxSynchronize());
}

PART allocations(void)
{
	CUdeviceptr kept, given_back, pooled;
	void *host;

	CHECK(cuMemAlloc(&kept, 3 * BYTES)); /* never freed */
	CHECK(cuMemAlloc(&given_back, 2 * BYTES));
	CHECK(cuMemFree(given_back));
	CHECK(cuMemAllocHost(&host, BYTES));
	CHECK(cuMemFreeHost(host));
	CHECK(cuMemAllocAsync(&pooled, BYTES, gpu.streams[0]));
	CHECK(cuMemFreeAsync(pooled, gpu.streams[0]));
	CHECK(cuStreamSynchronize(gpu.streams[0]));
}

PART peer_copies(CUdevice other_device)
{
	CUcontext other;
	CUdeviceptr there;

	CHECK(cuDevicePrimaryCtxRetain(&other, other_device));
	CHECK(cuCtxPushCurrent(other));
	CHECK(cuMemAlloc(&there, BYTES));
	CHECK(cuCtxPopCurrent(NULL));
	for (int i = 0; i < 10; i++) {
		CHECK(cuMemcpyPeerAsync(there, other, gpu.device_memory, gpu.context, BYTES,
					gpu.streams[0]));
		CHECK(cuMemcpyPeerAsync(gpu.other_memory, gpu.context, there, other, BYTES,
					gpu.streams[0]));
	}
	CHECK(cuStreamSynchronize(gpu.streams[0]));
	CHECK(cuCtxPushCurrent(other));
	CHECK(cuMemFree(there));
	CHECK(cuCtxPopCurrent(NULL));
	CHECK(cuDevicePrimaryCtxRelease(other_device));
}

PART failed_calls(void)
{
	CUdeviceptr none;

	/* More than any device has. */
	if (cuMemAlloc(&none, (size_t)1 << 50) == CUDA_SUCCESS)
		exit(1);
}

PART ranges(void)
{
	for (int i = 0; i < 5; i++) {
		nvtxRangePushA("outer");
		launch(gpu.streams[0], "first");
		nvtxRangePushA("inner");
		launch(gpu.streams[0], "second");
		nvtxRangePop();
		nvtxRangePop();
	}
	CHECK(cuStreamSynchronize(gpu.streams[0]));
}

static void set_up(void)
{
	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&gpu.context, 0));
	CHECK(cuCtxSetCurrent(gpu.context));
	CHECK(cuModuleLoadData(&gpu.module, ptx));
	for (int i = 0; i < 3; i++)
		CHECK(cuStreamCreate(&gpu.streams[i], CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&gpu.device_memory, BYTES));
	CHECK(cuMemAlloc(&gpu.other_memory, BYTES));
	CHECK(cuMemAllocHost((void **)&gpu.pinned, BYTES));
	gpu.pageable = calloc(1, BYTES);
	if (!gpu.pageable)
		exit(1);
}

int main(void)
{
	int device_count = 0;

	set_up();
	CHECK(cuDeviceGetCount(&device_count));
	explicit_graph();
	captured_graph();
	copies();
	allocations();
	failed_calls();
	ranges();
	if (device_count > 1)
		peer_copies(1);
	printf("all kinds of work, %d devices\n", device_count);
	return 0;
}
