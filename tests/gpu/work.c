/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issues all kinds of GPU work from C on a real GPU. tests/gpu/check.sh builds and records it on
 * machines with a CUDA toolkit.
 *
 * - explicit graphs: child graphs, clones, updates; memory, event, host, batch and conditional
 *   nodes
 * - stream capture, several streams, memory pools, memsets, NVTX
 * - copies between pageable, pinned and device memory, and between devices
 *
 * Omits work that the toolkit or the driver is too old for. The function that requests each kind of
 * work is named after it.
 */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cudaProfiler.h>

#if __has_include(<nvtx3/nvToolsExtCuda.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#define HAS_NVTX 1
#else
#define HAS_NVTX 0
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
			  ".visible .entry captured_early() { ret; }\n"
			  ".visible .entry in_body() { ret; }\n"
			  ".visible .entry in_inner_body() { ret; }\n"
			  ".visible .entry after_inner_body() { ret; }\n"
			  ".visible .entry between_nodes() { ret; }\n"
			  ".visible .entry from_template() { ret; }\n"
			  ".visible .entry in_range() { ret; }\n"
			  ".visible .entry updated() { ret; }\n";

static struct {
	int driver_version;
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

static CUDA_MEMCPY3D copy_params(size_t bytes)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = gpu.pinned,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = gpu.device_memory,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1,
	};
}

static __attribute__((noinline)) CUgraphNode add_copy(CUgraph graph, CUgraphNode after)
{
	CUDA_MEMCPY3D copy = copy_params(BYTES);
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

/* Changes the template, which affects future instances only. */
static __attribute__((noinline)) void change_template(CUgraphNode node)
{
	CUDA_KERNEL_NODE_PARAMS params = kernel_params("from_template", 2);

	CHECK(cuGraphKernelNodeSetParams(node, &params));
	KEEP_FRAME();
}

static __attribute__((noinline)) void change_copy(CUgraphExec exec, CUgraph graph)
{
	CUDA_MEMCPY3D copy = copy_params(BYTES / 2);
	CUgraphNodeType type;
	CUgraphNode nodes[8];
	size_t count = 8;

	CHECK(cuGraphGetNodes(graph, nodes, &count));
	for (size_t i = 0; i < count; i++) {
		CHECK(cuGraphNodeGetType(nodes[i], &type));
		if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
			CHECK(cuGraphExecMemcpyNodeSetParams(exec, nodes[i], &copy, gpu.context));
	}
	KEEP_FRAME();
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
	change_copy(exec, graph);
	replay(exec, gpu.streams[1], REPLAYS);
	change_template(updatable);
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

/*
 * With --capture-range cudaProfilerApi, the graph is created before the recorded range and runs in
 * it.
 */
static __attribute__((noinline)) CUgraphExec capture_early(void)
{
	CUgraphExec exec;
	CUgraph graph;

	CHECK(cuStreamBeginCapture(gpu.streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch(gpu.streams[0], "captured_early");
	CHECK(cuStreamEndCapture(gpu.streams[0], &graph));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cuGraphDestroy(graph));
	return exec;
}

PART replay_early(CUgraphExec exec)
{
	replay(exec, gpu.streams[0], REPLAYS);
	CHECK(cuStreamSynchronize(gpu.streams[0]));
	CHECK(cuGraphExecDestroy(exec));
}

static void CUDA_CB do_nothing(void *unused)
{
	(void)unused;
}

/* Memory owned by the graph, events, a host function, an empty node, and a write by the stream. */
PART graph_of_other_nodes(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS memory = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
		.bytesize = BYTES,
	};
	CUDA_HOST_NODE_PARAMS host = {.fn = do_nothing};
	CUgraphNode nodes[9];
	CUgraphExec exec;
	CUgraph graph;
	CUevent event;

	CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &memory));
	nodes[1] = add_kernel(graph, &nodes[0], "between_nodes");
	CHECK(cuGraphAddEventRecordNode(&nodes[2], graph, &nodes[1], 1, event));
	CHECK(cuGraphAddEventWaitNode(&nodes[3], graph, &nodes[2], 1, event));
	CHECK(cuGraphAddHostNode(&nodes[4], graph, &nodes[3], 1, &host));
	CHECK(cuGraphAddEmptyNode(&nodes[5], graph, &nodes[4], 1));
	nodes[6] = add_kernel(graph, &nodes[5], "between_nodes");
	CHECK(cuGraphAddMemFreeNode(&nodes[7], graph, &nodes[6], 1, memory.dptr));
#if CUDA_VERSION >= 11070
	if (gpu.driver_version >= 11070) {
		CUstreamBatchMemOpParams write = {
			.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
				       .address = gpu.other_memory,
				       .value = 1},
		};
		CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {
			.ctx = gpu.context, .count = 1, .paramArray = &write};

		CHECK(cuGraphAddBatchMemOpNode(&nodes[8], graph, &nodes[7], 1, &batch));
	}
#endif
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	replay(exec, gpu.streams[0], REPLAYS);
	CHECK(cuStreamSynchronize(gpu.streams[0]));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuEventDestroy(event));
}

#if CUDA_VERSION >= 12040
static __attribute__((noinline)) CUgraph add_condition(CUgraph graph, const CUgraphNode *after,
						       CUgraphNode *node)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphConditionalHandle handle;

	CHECK(cuGraphConditionalHandleCreate(&handle, graph, gpu.context, 1,
					     CU_GRAPH_COND_ASSIGN_DEFAULT));
	params.conditional.handle = handle;
	params.conditional.type = CU_GRAPH_COND_TYPE_IF;
	params.conditional.size = 1;
	params.conditional.ctx = gpu.context;
	CHECK(cuGraphAddNode_v2(node, graph, after, NULL, after ? 1 : 0, &params));
	return params.conditional.phGraph_out[0];
}

PART replay_elsewhere(CUgraphExec exec)
{
	replay(exec, gpu.streams[1], 1);
	KEEP_FRAME();
}

/*
 * A body that always runs, with kernels and a copy. Kernels surround it, and a child graph follows.
 * Two call paths launch the graph alternately.
 */
PART conditional_graph(void)
{
	CUgraphNode node, in_body;
	CUgraph graph, body;
	CUgraphExec exec;

	CHECK(cuGraphCreate(&graph, 0));
	node = add_kernel(graph, NULL, "first");
	body = add_condition(graph, &node, &node);
	in_body = add_kernel(body, NULL, "in_body");
	in_body = add_copy(body, in_body);
	add_kernel(body, &in_body, "in_body");
	node = add_kernel(graph, &node, "second");
	add_child(graph, node);
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < REPLAYS / 2; i++) {
		replay(exec, gpu.streams[0], 1);
		replay_elsewhere(exec);
	}
	CHECK(cuCtxSynchronize());
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

/*
 * The body runs first in each launch. It contains a child graph and another condition. All launches
 * come from one call path, so the work of the body cannot be assigned to a single launch.
 */
PART conditional_first(void)
{
	CUgraphNode node, in_body;
	CUgraph graph, body, inner;
	CUgraphExec exec;

	CHECK(cuGraphCreate(&graph, 0));
	body = add_condition(graph, NULL, &node);
	in_body = add_child(body, add_kernel(body, NULL, "in_body"));
	inner = add_condition(body, &in_body, &in_body);
	add_kernel(inner, NULL, "in_inner_body");
	add_kernel(body, &in_body, "after_inner_body");
	add_kernel(graph, &node, "second");
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	replay(exec, gpu.streams[0], REPLAYS);
	CHECK(cuStreamSynchronize(gpu.streams[0]));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}
#endif

static void begin_capture(void)
{
	CHECK(cuStreamBeginCapture(gpu.streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

PART capture_first(CUgraph *out)
{
	begin_capture();
	launch(gpu.streams[0], "captured");
	launch(gpu.streams[0], "captured");
	CHECK(cuStreamEndCapture(gpu.streams[0], out));
}

PART capture_update(CUgraph *out)
{
	begin_capture();
	launch(gpu.streams[0], "captured");
	launch(gpu.streams[0], "updated");
	CHECK(cuStreamEndCapture(gpu.streams[0], out));
}

/*
 * Captures a graph repeatedly, like programs whose work changes with each step. Kernels belong to
 * capture_first() and capture_update() alternately, and "updated" only to the latter.
 */
PART updated_graph(void)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec = NULL;
	CUgraph graph;

	for (int i = 0; i < 5; i++) {
		if (i % 2)
			capture_update(&graph);
		else
			capture_first(&graph);
		if (exec)
			CHECK(cuGraphExecUpdate(exec, graph, &info));
		else
			CHECK(cuGraphInstantiate(&exec, graph, 0));
		replay(exec, gpu.streams[0], 2);
		CHECK(cuGraphDestroy(graph));
	}
	CHECK(cuStreamSynchronize(gpu.streams[0]));
	CHECK(cuGraphExecDestroy(exec));
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

PART managed_memory(void)
{
	CUdeviceptr managed;

	CHECK(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	memset((void *)managed, 1, BYTES); /* on the CPU, so that pages migrate to the GPU */
	for (int i = 0; i < 10; i++) {
		CHECK(cuMemcpyAsync(gpu.device_memory, managed, BYTES, gpu.streams[0]));
		CHECK(cuMemsetD8Async(managed, 0, BYTES, gpu.streams[0]));
	}
	CHECK(cuStreamSynchronize(gpu.streams[0]));
	CHECK(cuMemFree(managed));
}

PART peer_copies(CUdevice other_device)
{
	CUcontext other;
	int is_reachable = 0;
	CUdeviceptr there;

	CHECK(cuDevicePrimaryCtxRetain(&other, other_device));
	CHECK(cuCtxPushCurrent(other));
	CHECK(cuMemAlloc(&there, BYTES));
	CHECK(cuDeviceCanAccessPeer(&is_reachable, other_device, 0));
	if (is_reachable)
		CHECK(cuCtxEnablePeerAccess(gpu.context, 0));
	CHECK(cuCtxPopCurrent(NULL));
	if (is_reachable)
		CHECK(cuCtxEnablePeerAccess(other, 0));
	for (int i = 0; i < 10; i++) {
		CHECK(cuMemcpyPeerAsync(there, other, gpu.device_memory, gpu.context, BYTES,
					gpu.streams[0]));
		CHECK(cuMemcpyPeerAsync(gpu.other_memory, gpu.context, there, other, BYTES,
					gpu.streams[0]));
		/* The driver determines the location from each address. */
		CHECK(cuMemcpyAsync(there, gpu.device_memory, BYTES, gpu.streams[1]));
	}
	CHECK(cuCtxSynchronize());
	CHECK(cuCtxPushCurrent(other));
	CHECK(cuMemFree(there));
	if (is_reachable)
		CHECK(cuCtxDisablePeerAccess(gpu.context));
	CHECK(cuCtxPopCurrent(NULL));
	if (is_reachable)
		CHECK(cuCtxDisablePeerAccess(other));
	CHECK(cuDevicePrimaryCtxRelease(other_device));
}

PART failed_calls(void)
{
	CUdeviceptr none;

	/* Request more memory than any device has. */
	if (cuMemAlloc(&none, (size_t)1 << 50) == CUDA_SUCCESS)
		exit(1);
}

#if HAS_NVTX
static void name_things(nvtxDomainHandle_t domain)
{
	nvtxNameCategoryA(7, "steps");
	nvtxDomainNameCategoryA(domain, 8, "transfers");
	nvtxNameCuDeviceA(0, "trainer");
	nvtxNameCuContextA(gpu.context, "main");
	nvtxNameCuStreamA(gpu.streams[0], "compute");
	nvtxNameCuStreamA(gpu.streams[1], "copies");
}

static nvtxEventAttributes_t attributes(const char *text, uint32_t category, uint64_t payload)
{
	nvtxEventAttributes_t event = {
		.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.category = category,
		.colorType = NVTX_COLOR_ARGB,
		.color = 0xff2288cc,
		.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
		.messageType = NVTX_MESSAGE_TYPE_ASCII,
	};

	event.payload.ullValue = payload;
	event.message.ascii = text;
	return event;
}

/* Nested, in two domains, started and ended across each other, with categories and payloads. */
PART ranges(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("io");
	nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, "registered");

	name_things(domain);
	for (uint64_t i = 0; i < 5; i++) {
		nvtxEventAttributes_t step = attributes("step", 7, i);
		nvtxEventAttributes_t load = attributes(NULL, 8, i);
		nvtxRangeId_t epoch = nvtxRangeStartA("epoch"), batch;

		load.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
		load.message.registered = name;
		nvtxRangePushEx(&step);
		launch(gpu.streams[0], "first");
		nvtxDomainRangePushEx(domain, &load);
		CHECK(cuMemcpyHtoDAsync(gpu.device_memory, gpu.pinned, BYTES, gpu.streams[1]));
		nvtxDomainRangePop(domain);
		batch = nvtxDomainRangeStartEx(domain, &load);
		nvtxRangePushA("inner");
		launch(gpu.streams[0], "in_range");
		nvtxRangePop();
		nvtxRangeEnd(epoch);
		launch(gpu.streams[0], "second");
		nvtxDomainRangeEnd(domain, batch);
		nvtxMarkA("stepped");
		nvtxDomainMarkEx(domain, &load);
		nvtxRangePop();
	}
	CHECK(cuStreamSynchronize(gpu.streams[0]));
	CHECK(cuStreamSynchronize(gpu.streams[1]));
}
#else
PART ranges(void)
{
	launch(gpu.streams[0], "in_range");
	CHECK(cuStreamSynchronize(gpu.streams[0]));
}
#endif

static void set_up(void)
{
	CHECK(cuInit(0));
	CHECK(cuDriverGetVersion(&gpu.driver_version));
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
	CUgraphExec early;

	set_up();
	CHECK(cuDeviceGetCount(&device_count));
	explicit_graph();
	captured_graph();
	early = capture_early();
	CHECK(cuProfilerStart());
	replay_early(early);
	explicit_graph();
	captured_graph();
	updated_graph();
	graph_of_other_nodes();
#if CUDA_VERSION >= 12040
	if (gpu.driver_version >= 12040) {
		conditional_graph();
		conditional_first();
	}
#endif
	copies();
	allocations();
	managed_memory();
	failed_calls();
	ranges();
	if (device_count > 1)
		peer_copies(1);
	CHECK(cuProfilerStop());
	copies();
	printf("all kinds of work, %d devices\n", device_count);
	return 0;
}
