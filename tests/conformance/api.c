/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated driver from a program's point of view, without tracing, linked like a real one.
 *
 * Exit status: 0 if all checks passed, 1 if some failed.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

#define expect(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("  %s:%d: expected: %s\n", __FILE_NAME__, __LINE__, #condition);    \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static const char ptx[] = "// a comment with .entry not_this\n"
			  ".version 7.0\n.target sm_70\n.address_size 64\n"
			  "/* .entry nor_this */\n"
			  ".visible .entry _Z6matmulPfS_(\n"
			  "	.param .u64 a,\n	.param .u64 b\n)\n"
			  ".maxntid 256, 1, 1\n"
			  "{\n"
			  "	.shared .align 4 .b8 tile[4096];\n"
			  "	.reg .b32 %r<20>;\n"
			  "	{ ret; }\n"
			  "}\n"
			  ".func helper() { ret; }\n"
			  ".entry second() { ret; }\n";

static CUcontext context;
static CUmodule module;
static CUfunction matmul;
static CUfunction second;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool calls_before_init_fail(void)
{
	const char *name = NULL;
	CUdevice device;
	int version = 0;

	expect(cuDeviceGet(&device, 0) == CUDA_ERROR_NOT_INITIALIZED);
	expect(!cuDriverGetVersion(&version) && version == 13000);
	expect(!cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &name));
	expect(!strcmp(name, "CUDA_ERROR_NOT_INITIALIZED"));
	expect(cuGetErrorString((CUresult)12345, &name) == CUDA_ERROR_INVALID_VALUE && !name);
	expect(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
	return true;
}

static bool device_says_that_it_is_simulated(void)
{
	char name[64] = "";
	CUdevice device;
	int value = 0;

	expect(!cuInit(0));
	expect(!cuDeviceGetCount(&value) && value == 2);
	expect(!cuDeviceGet(&device, 0) && cuDeviceGet(&device, 2) == CUDA_ERROR_INVALID_DEVICE);
	expect(!cuDeviceGetName(name, sizeof(name), device));
	expect(!strcmp(name, "xtrace simulated GPU"));
	expect(!cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device) && value == 32);
	return true;
}

static bool contexts_form_a_stack(void)
{
	CUcontext other;
	CUcontext popped;
	CUdevice device;
	unsigned int flags;
	int active = 9;

	expect(cuStreamSynchronize(NULL) == CUDA_ERROR_INVALID_CONTEXT);
	expect(!cuDevicePrimaryCtxGetState(0, &flags, &active) && !active);
	expect(!cuDevicePrimaryCtxRetain(&context, 0));
	expect(!cuDevicePrimaryCtxGetState(0, &flags, &active) && active);
	expect(!cuCtxSetCurrent(context));
	expect(!cuCtxCreate(&other, NULL, 0, 0));
	expect(!cuCtxGetCurrent(&popped) && popped == other);
	expect(!cuCtxGetDevice(&device) && device == 0);
	expect(!cuCtxPopCurrent(&popped) && popped == other);
	expect(!cuCtxGetCurrent(&popped) && popped == context);
	expect(!cuCtxDestroy(other));
	expect(cuCtxDestroy(other) == CUDA_ERROR_INVALID_CONTEXT);
	expect(cuCtxDestroy(context) == CUDA_ERROR_INVALID_CONTEXT); /* primary */
	return true;
}

static bool ptx_is_read(void)
{
	CUfunction function;
	CUmodule broken;
	int value = 0;

	expect(!cuModuleLoadData(&module, ptx));
	expect(!cuModuleGetFunction(&matmul, module, "_Z6matmulPfS_"));
	expect(!cuModuleGetFunction(&second, module, "second"));
	expect(cuModuleGetFunction(&function, module, "not_this") == CUDA_ERROR_NOT_FOUND);
	expect(cuModuleGetFunction(&function, module, "nor_this") == CUDA_ERROR_NOT_FOUND);
	expect(cuModuleGetFunction(&function, module, "helper") == CUDA_ERROR_NOT_FOUND);
	expect(!cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, matmul));
	expect(value == 4096);
	expect(!cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, second));
	expect(value == 0);
	expect(cuModuleLoadData(&broken, "hello") == CUDA_ERROR_INVALID_IMAGE);
	expect(cuModuleLoadData(&broken, "\x7f"
					 "ELF") == CUDA_ERROR_NO_BINARY_FOR_GPU);
	return true;
}

static bool memory_holds_what_is_copied(void)
{
	uint16_t halves[8] = {0};
	char from[1000];
	char to[1000];
	CUdeviceptr a;
	CUdeviceptr b;
	CUdeviceptr start;
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)i;
	expect(!cuMemAlloc(&a, sizeof(from)) && !cuMemAlloc(&b, sizeof(from)));
	expect(!cuMemcpyHtoD(a, from, sizeof(from)));
	expect(!cuMemcpyDtoD(b, a, sizeof(from)));
	expect(!cuMemcpyDtoH(to, b, sizeof(from)));
	expect(!memcmp(from, to, sizeof(from)));
	expect(!cuMemsetD16(b + 2, 0x1234, 4));
	expect(!cuMemcpyDtoH(halves, b, sizeof(halves)));
	expect(halves[1] == 0x1234 && halves[4] == 0x1234 && halves[5] != 0x1234);
	expect(cuMemsetD32(b + 2, 1, 1) == CUDA_ERROR_INVALID_VALUE);
	expect(!cuMemGetAddressRange(&start, &bytes, a + 10));
	expect(start == a && bytes == sizeof(from));
	expect(!cuMemFree(a) && !cuMemFree(b));
	expect(cuMemFree(a) == CUDA_ERROR_INVALID_VALUE);
	expect(cuMemAlloc(&a, 0) == CUDA_ERROR_INVALID_VALUE);
	expect(cuMemAlloc(&a, (size_t)1 << 50) == CUDA_ERROR_OUT_OF_MEMORY);
	return true;
}

static bool host_memory_is_told_apart(void)
{
	unsigned int type = 0;
	CUdeviceptr managed;
	void *pinned;
	char own[64];

	expect(!cuMemHostAlloc(&pinned, 100, 0));
	expect(!cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				      (CUdeviceptr)(uintptr_t)pinned));
	expect(type == CU_MEMORYTYPE_HOST);
	expect(!cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
	expect(!cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed) && type);
	expect(cuMemFree((CUdeviceptr)(uintptr_t)pinned) == CUDA_ERROR_INVALID_VALUE);
	expect(!cuMemFreeHost(pinned) && !cuMemFree(managed));
	expect(!cuMemHostRegister(own, sizeof(own), 0));
	expect(cuMemHostRegister(own, sizeof(own), 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	expect(!cuMemHostUnregister(own));
	expect(cuMemHostUnregister(own) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	return true;
}

static CUresult launch(CUfunction function, CUstream stream)
{
	return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static bool bad_launches_are_refused(void)
{
	expect(cuLaunchKernel(second, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) ==
	       CUDA_ERROR_INVALID_VALUE);
	expect(cuLaunchKernel(second, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL) ==
	       CUDA_ERROR_INVALID_VALUE);
	expect(cuLaunchKernel(second, 1, 1, 1, 32, 1, 1, 60000, NULL, NULL, NULL) ==
	       CUDA_ERROR_INVALID_VALUE);
	expect(!cuFuncSetAttribute(second, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
	expect(!cuLaunchKernel(second, 1, 1, 1, 32, 1, 1, 60000, NULL, NULL, NULL));
	expect(launch(NULL, NULL) == CUDA_ERROR_INVALID_HANDLE);
	expect(launch((CUfunction)module, NULL) == CUDA_ERROR_INVALID_HANDLE);
	return true;
}

static bool waiting_takes_as_long_as_the_work(void)
{
	float elapsed_ms = 0;
	CUevent begin;
	CUevent end;
	CUstream stream;
	uint64_t began_ns;

	expect(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	expect(!cuEventCreate(&begin, 0) && !cuEventCreate(&end, 0));
	expect(!cuEventRecord(begin, stream));
	began_ns = now_ns();
	for (int i = 0; i < 10; i++)
		expect(!launch(second, stream));
	expect(!cuEventRecord(end, stream));
	expect(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
	expect(cuEventQuery(end) == CUDA_ERROR_NOT_READY);
	expect(!cuStreamSynchronize(stream));
	expect(now_ns() - began_ns >= 10 * 2000000ull); /* XTRACE_SIMGPU_KERNEL_NS=2000000 */
	expect(!cuStreamQuery(stream) && !cuEventQuery(end));
	expect(!cuEventElapsedTime(&elapsed_ms, begin, end));
	expect(elapsed_ms >= 20 && elapsed_ms < 25);
	expect(!cuEventDestroy(begin) && !cuEventDestroy(end) && !cuStreamDestroy(stream));
	return true;
}

static int host_calls[8];
static _Atomic int host_call_count;

static void CUDA_CB note_host_call(void *number)
{
	usleep(1000);
	host_calls[host_call_count++] = (int)(intptr_t)number;
}

static bool host_functions_run_in_order(void)
{
	CUstream stream;

	expect(!cuStreamCreate(&stream, 0));
	for (intptr_t i = 0; i < 4; i++) {
		expect(!launch(second, stream));
		expect(!cuLaunchHostFunc(stream, note_host_call, (void *)i));
	}
	expect(!cuStreamSynchronize(stream));
	expect(host_call_count == 4);
	for (int i = 0; i < 4; i++)
		expect(host_calls[i] == i);
	expect(!cuStreamDestroy(stream));
	return true;
}

static bool graph_copies_and_computes(void)
{
	int value = 41;
	int result = 0;
	CUdeviceptr memory;
	CUstream stream;
	CUgraphExec exec;
	CUgraph graph;

	expect(!cuMemAlloc(&memory, sizeof(value)));
	expect(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	expect(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED) ==
	       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	expect(!cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	expect(!cuMemcpyHtoDAsync(memory, &value, sizeof(value), stream));
	expect(!launch(second, stream));
	expect(!cuMemcpyDtoHAsync(&result, memory, sizeof(result), stream));
	expect(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	expect(!cuStreamEndCapture(stream, &graph));
	expect(!cuGraphInstantiate(&exec, graph, 0));
	expect(result == 0);
	value = 42;
	expect(!cuGraphLaunch(exec, stream));
	expect(!cuStreamSynchronize(stream));
	expect(result == 42);
	expect(!cuGraphExecDestroy(exec) && !cuGraphDestroy(graph));
	expect(!cuMemFree(memory) && !cuStreamDestroy(stream));
	return true;
}

/* Captures a graph that copies to memory and then launches kernels. */
static bool capture_copy(CUstream stream, CUdeviceptr memory, const int *from, int launches,
			 CUgraph *graph)
{
	expect(!cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	expect(!cuMemcpyHtoDAsync(memory, from, sizeof(*from), stream));
	for (int i = 0; i < launches; i++)
		expect(!launch(second, stream));
	expect(!cuStreamEndCapture(stream, graph));
	return true;
}

static bool graph_is_updated_by_one_alike(void)
{
	static const int values[] = {1, 2, 3};
	CUgraphExecUpdateResultInfo info;
	CUgraph graphs[3];
	CUdeviceptr memory;
	CUstream stream;
	CUgraphExec exec;
	int result = 0;

	expect(!cuMemAlloc(&memory, sizeof(result)));
	expect(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 3; i++)
		expect(capture_copy(stream, memory, &values[i], i < 2 ? 1 : 2, &graphs[i]));
	expect(!cuGraphInstantiate(&exec, graphs[0], 0));
	expect(cuGraphExecUpdate(exec, graphs[2], &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	expect(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	expect(!cuGraphLaunch(exec, stream));
	expect(!cuMemcpyDtoH(&result, memory, sizeof(result)) && result == 1);
	expect(!cuGraphExecUpdate(exec, graphs[1], &info));
	expect(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	expect(!cuGraphLaunch(exec, stream));
	expect(!cuMemcpyDtoH(&result, memory, sizeof(result)) && result == 2);
	expect(!cuGraphExecDestroy(exec));
	for (int i = 0; i < 3; i++)
		expect(!cuGraphDestroy(graphs[i]));
	expect(!cuMemFree(memory) && !cuStreamDestroy(stream));
	return true;
}

static bool devices_copy_to_each_other(void)
{
	CUdeviceptr there, back;
	CUcontext peer;
	int value = 7;

	expect(!cuMemAlloc(&back, sizeof(value)));
	expect(!cuMemcpyHtoD(back, &value, sizeof(value)));
	expect(!cuDevicePrimaryCtxRetain(&peer, 1) && !cuCtxPushCurrent(peer));
	expect(!cuMemAlloc(&there, sizeof(value)));
	expect(!cuMemcpyPeer(there, peer, back, context, sizeof(value)));
	expect(!cuMemsetD8(back, 0, sizeof(value)));
	expect(!cuMemcpyPeerAsync(back, context, there, peer, sizeof(value), NULL));
	expect(!cuCtxSynchronize());
	value = 0;
	expect(!cuMemcpyDtoH(&value, back, sizeof(value)) && value == 7);
	expect(cuMemcpyPeer(there, NULL, back, context, 1) == CUDA_ERROR_INVALID_CONTEXT);
	expect(!cuMemFree(there) && !cuCtxPopCurrent(NULL) && !cuDevicePrimaryCtxRelease(1));
	expect(!cuMemFree(back));
	return true;
}

static bool forked_capture_must_be_joined(void)
{
	CUstream side;
	CUstream stream;
	CUevent event;
	CUgraph graph;

	expect(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	expect(!cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	expect(!cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	expect(!cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	expect(!launch(second, stream));
	expect(!cuEventRecord(event, stream));
	expect(!cuStreamWaitEvent(side, event, 0));
	expect(!launch(second, side));
	expect(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	expect(!launch(second, stream) && !launch(second, side));
	expect(!cuEventDestroy(event) && !cuStreamDestroy(side) && !cuStreamDestroy(stream));
	return true;
}

static bool entry_points_are_found_by_name(void)
{
	CUdriverProcAddressQueryResult status;
	void *plain = NULL;
	void *own = NULL;
	void *none = NULL;

	expect(!cuGetProcAddress("cuLaunchKernel", &plain, 12000, 0, &status));
	expect(plain && status == CU_GET_PROC_ADDRESS_SUCCESS);
	expect(plain == (void *)cuLaunchKernel);
	expect(!cuGetProcAddress("cuLaunchKernel", &own, 12000,
				 CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
	expect(own && own != plain);
	expect(!cuGetProcAddress("cuMemAlloc", &plain, 12000, 0, &status));
	expect(plain == (void *)cuMemAlloc); /* the macro: cuMemAlloc_v2 */
	expect(!cuGetProcAddress("cuCtxCreate", &own, 12000, 0, &status));
	expect(!cuGetProcAddress("cuCtxCreate", &plain, 13000, 0, &status));
	expect(own && plain && own != plain);
	expect(!cuGetProcAddress("cuNoSuchThing", &none, 13000, 0, &status));
	expect(!none && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	return true;
}

static void *launch_and_leave(void *failed_out)
{
	if (cuCtxSetCurrent(context) || launch(second, CU_STREAM_PER_THREAD) ||
	    cuStreamSynchronize(CU_STREAM_PER_THREAD))
		*(_Atomic int *)failed_out = 1;
	return NULL;
}

static bool threads_come_and_go(void)
{
	static _Atomic int failed;
	pthread_t threads[50];

	for (int i = 0; i < 50; i++)
		expect(!pthread_create(&threads[i], NULL, launch_and_leave, (void *)&failed));
	for (int i = 0; i < 50; i++)
		expect(!pthread_join(threads[i], NULL));
	expect(!failed);
	return true;
}

static bool everything_can_be_given_back(void)
{
	expect(!cuModuleUnload(module));
	expect(launch(second, NULL) == CUDA_ERROR_INVALID_HANDLE);
	expect(!cuDevicePrimaryCtxRelease(0));
	expect(cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);
	expect(cuDevicePrimaryCtxRelease(0) == CUDA_ERROR_INVALID_CONTEXT);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(void);
} checks[] = {
	{"calls_before_init_fail", calls_before_init_fail},
	{"device_says_that_it_is_simulated", device_says_that_it_is_simulated},
	{"contexts_form_a_stack", contexts_form_a_stack},
	{"ptx_is_read", ptx_is_read},
	{"memory_holds_what_is_copied", memory_holds_what_is_copied},
	{"host_memory_is_told_apart", host_memory_is_told_apart},
	{"bad_launches_are_refused", bad_launches_are_refused},
	{"waiting_takes_as_long_as_the_work", waiting_takes_as_long_as_the_work},
	{"host_functions_run_in_order", host_functions_run_in_order},
	{"graph_copies_and_computes", graph_copies_and_computes},
	{"graph_is_updated_by_one_alike", graph_is_updated_by_one_alike},
	{"devices_copy_to_each_other", devices_copy_to_each_other},
	{"forked_capture_must_be_joined", forked_capture_must_be_joined},
	{"entry_points_are_found_by_name", entry_points_are_found_by_name},
	{"threads_come_and_go", threads_come_and_go},
	{"everything_can_be_given_back", everything_can_be_given_back},
};

int main(void)
{
	unsigned int failed_count = 0;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		bool has_passed = checks[i].run();

		printf("%s %s\n", has_passed ? "PASS" : "FAIL", checks[i].name);
		failed_count += !has_passed;
	}
	return failed_count ? 1 : 0;
}
