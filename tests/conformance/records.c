/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks activity records: they belong to their launches, and their times are consistent.
 */
#include <string.h>

#include "conformance.h"

#define DRIVER_API XT_CUPTI_CB_DOMAIN_DRIVER_API

static const struct note *launch_enter(size_t index)
{
	return find_note(DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, XT_CUPTI_API_ENTER, index);
}

static bool record_belongs_to_its_launch(void)
{
	const struct cupti_activity_kernel *record;
	const struct kernel_note *kernel;

	client_clear();
	expect(driver.cuLaunchKernel(driver.empty, 4, 3, 2, 32, 2, 2, 512, NULL, NULL, NULL) ==
	       CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == 1);
	kernel = find_kernel(launch_enter(0)->correlation_id);
	expect(kernel);
	record = &kernel->record;
	expect(!strcmp(kernel->name, EMPTY_NAME));
	expect(record->kind == XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	expect(record->grid[0] == 4 && record->grid[1] == 3 && record->grid[2] == 2);
	expect(record->block[0] == 32 && record->block[1] == 2 && record->block[2] == 2);
	expect(record->dynamic_shared_bytes == 512);
	expect(record->registers_per_thread > 0);
	expect(record->graph_node_id == 0);
	return true;
}

static bool record_names_context_and_device(void)
{
	uint32_t context_id = 0;
	uint32_t device_id = 99;

	client_clear();
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == 1);
	expect(!cupti.cuptiGetContextId(driver.context, &context_id));
	expect(!cupti.cuptiGetDeviceId(driver.context, &device_id));
	expect(client_kernel(0)->record.context_id == context_id);
	expect(client_kernel(0)->record.device_id == device_id);
	return true;
}

static bool timestamp_is_the_registered_clock(void)
{
	uint64_t before_ns = client_now_ns();
	uint64_t told_ns = 0;

	expect(!cupti.cuptiGetTimestamp(&told_ns));
	expect(before_ns <= told_ns && told_ns <= client_now_ns());
	return true;
}

/* The error of converting the GPU's clock to the host's. */
#define CLOCK_ERROR_NS 20000

static bool times_are_on_the_registered_clock(void)
{
	uint64_t after_ns;

	client_clear();
	for (int i = 0; i < 100; i++)
		expect(launch_spin(NULL, 20000) == CUDA_SUCCESS);
	driver.cuCtxSynchronize();
	after_ns = client_now_ns();
	client_settle();
	expect(client_kernel_count() == 100);
	for (size_t i = 0; i < 100; i++) {
		const struct note *enter = launch_enter(i);
		const struct kernel_note *kernel = find_kernel(enter->correlation_id);

		expect(kernel);
		expect(kernel->record.start_ns && kernel->record.start_ns < kernel->record.end_ns);
		expect(kernel->record.start_ns + CLOCK_ERROR_NS > enter->time_ns);
		expect(kernel->record.end_ns < after_ns + CLOCK_ERROR_NS);
	}
	return true;
}

static bool kernels_of_a_stream_do_not_overlap(void)
{
	uint64_t last_end_ns = 0;

	client_clear();
	for (int i = 0; i < 200; i++)
		expect((i % 2 ? launch_spin(NULL, 5000) : launch_empty(NULL)) == CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == 200);
	for (size_t i = 0; i < 200; i++) {
		const struct kernel_note *kernel = find_kernel(launch_enter(i)->correlation_id);

		expect(kernel);
		expect(kernel->record.start_ns >= last_end_ns);
		last_end_ns = kernel->record.end_ns;
	}
	return true;
}

static bool streams_have_ids_of_their_own(void)
{
	enum { STREAMS = 3 };
	CUstream streams[STREAMS];
	uint32_t ids[STREAMS + 1];

	client_clear();
	for (int i = 0; i < STREAMS; i++) {
		expect(driver.cuStreamCreate(&streams[i],
					     i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT) ==
		       CUDA_SUCCESS);
		expect(!cupti.cuptiGetStreamIdEx(driver.context, streams[i], 0, &ids[i]));
		expect(launch_empty(streams[i]) == CUDA_SUCCESS);
	}
	expect(!cupti.cuptiGetStreamIdEx(driver.context, NULL, 0, &ids[STREAMS]));
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	client_settle();
	for (int i = 0; i <= STREAMS; i++) {
		const struct kernel_note *kernel = find_kernel(launch_enter(i)->correlation_id);

		expect(kernel);
		expect(kernel->record.stream_id == ids[i]);
		for (int j = 0; j < i; j++)
			expect(ids[i] != ids[j]);
	}
	for (int i = 0; i < STREAMS; i++)
		expect(driver.cuStreamDestroy_v2(streams[i]) == CUDA_SUCCESS);
	return true;
}

static bool own_default_stream_has_its_own_id(void)
{
	client_clear();
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	expect(launch_empty(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == 2);
	expect(find_kernel(launch_enter(0)->correlation_id)->record.stream_id !=
	       find_kernel(launch_enter(1)->correlation_id)->record.stream_id);
	return true;
}

static bool contexts_have_ids_of_their_own(void)
{
	static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .entry other()\n{\n\tret;\n}\n";
	const struct note *enter;
	CUfunction function;
	CUcontext context;
	CUmodule module;
	CUdevice device;
	uint32_t first_id = 0;
	uint32_t id = 0;

	client_clear();
	expect(driver.cuDeviceGet(&device, 0) == CUDA_SUCCESS);
	expect(driver.cuCtxCreate_v2(&context, 0, device) == CUDA_SUCCESS);
	expect(count_notes(XT_CUPTI_CB_DOMAIN_RESOURCE, XT_CUPTI_RESOURCE_CONTEXT_CREATED, 0) == 1);
	expect(driver.cuModuleLoadData(&module, text) == CUDA_SUCCESS);
	expect(driver.cuModuleGetFunction(&function, module, "other") == CUDA_SUCCESS);
	expect(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) ==
	       CUDA_SUCCESS);
	client_settle();
	expect(!cupti.cuptiGetContextId(context, &id));
	expect(!cupti.cuptiGetContextId(driver.context, &first_id));
	enter = launch_enter(0);
	expect(id != first_id && enter->context_id == id);
	expect(find_kernel(enter->correlation_id)->record.context_id == id);
	expect(driver.cuCtxDestroy_v2(context) == CUDA_SUCCESS);
	expect(driver.cuCtxSetCurrent(driver.context) == CUDA_SUCCESS);
	return true;
}

static bool copies_and_sets_are_recorded(void)
{
	uint32_t data[256] = {1, 2, 3};
	uint32_t back[256] = {0};
	CUdeviceptr memory;

	expect(!cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMCPY));
	expect(!cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMSET));
	client_clear();
	expect(driver.cuMemAlloc_v2(&memory, 2 * sizeof(data)) == CUDA_SUCCESS);
	expect(driver.cuMemcpyHtoD_v2(memory, data, sizeof(data)) == CUDA_SUCCESS);
	expect(driver.cuMemcpyDtoDAsync_v2(memory + sizeof(data), memory, sizeof(data), NULL) ==
	       CUDA_SUCCESS);
	expect(driver.cuMemsetD32_v2(memory, 0x11223344, 16) == CUDA_SUCCESS);
	expect(driver.cuMemcpyDtoH_v2(back, memory + sizeof(data), sizeof(data)) == CUDA_SUCCESS);
	client_settle();
	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMCPY));
	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMSET));
	expect(!memcmp(data, back, sizeof(data)));
	expect(client_memcpy_count() == 3 && client_memset_count() == 1);
	expect(client_memcpy(0)->copy_kind == XT_CUPTI_COPY_HTOD);
	expect(client_memcpy(1)->copy_kind == XT_CUPTI_COPY_DTOD);
	expect(client_memcpy(2)->copy_kind == XT_CUPTI_COPY_DTOH);
	for (size_t i = 0; i < 3; i++) {
		expect(client_memcpy(i)->bytes == sizeof(data));
		expect(client_memcpy(i)->start_ns &&
		       client_memcpy(i)->start_ns <= client_memcpy(i)->end_ns);
	}
	expect(client_memset(0)->bytes == 64 && client_memset(0)->value == 0x11223344);
	expect(driver.cuMemFree_v2(memory) == CUDA_SUCCESS);
	return true;
}

/* Callback ids of calls that are not launches. */
enum { CBID_MEM_ALLOC = 243, CBID_MEM_FREE = 245, CBID_MEMCPY_HTOD = 276 };

/*
 * Not a guarantee, but a known pitfall. If the callback of a release is disabled, its record has
 * the id of the last call that took one. A client that wants releases must enable their callbacks.
 */
static bool unheard_release_bears_another_id(void)
{
	CUdeviceptr memory;

	client_clear();
	expect(!cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMORY2));
	expect(driver.cuMemAlloc_v2(&memory, 1 << 20) == CUDA_SUCCESS);
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	expect(driver.cuMemFree_v2(memory) == CUDA_SUCCESS);
	client_settle();
	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMORY2));
	expect(client_memory_count() == 2);
	expect(client_memory(0)->correlation_id + 1 == launch_enter(0)->correlation_id);
	expect(client_memory(1)->correlation_id == launch_enter(0)->correlation_id);
	return true;
}

static bool memory_records_belong_to_their_calls(void)
{
	static const uint32_t cbids[] = {CBID_MEM_ALLOC, CBID_MEMCPY_HTOD, CBID_MEM_FREE};
	uint32_t ids[3];
	uint32_t word = 7;
	CUdeviceptr memory;

	client_clear();
	expect(!cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMCPY));
	expect(!cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMORY2));
	for (size_t i = 0; i < 3; i++)
		client_enable(DRIVER_API, cbids[i], true);
	expect(driver.cuMemAlloc_v2(&memory, 1 << 20) == CUDA_SUCCESS);
	expect(driver.cuMemcpyHtoD_v2(memory, &word, sizeof(word)) == CUDA_SUCCESS);
	expect(driver.cuMemFree_v2(memory) == CUDA_SUCCESS);
	client_settle();
	for (size_t i = 0; i < 3; i++) {
		const struct note *enter = find_note(DRIVER_API, cbids[i], XT_CUPTI_API_ENTER, 0);

		client_enable(DRIVER_API, cbids[i], false);
		expect(enter);
		ids[i] = enter->correlation_id;
	}
	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMCPY));
	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMORY2));
	expect(client_memory_count() == 2 && client_memcpy_count() == 1);
	expect(client_memory(0)->correlation_id == ids[0]);
	expect(client_memcpy(0)->correlation_id == ids[1]);
	expect(client_memory(1)->correlation_id == ids[2]);
	return true;
}

static bool allocations_are_recorded(void)
{
	uint64_t before_ns = client_now_ns();
	CUdeviceptr memory;

	expect(!cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_MEMORY2));
	client_clear();
	expect(driver.cuMemAlloc_v2(&memory, 3 << 20) == CUDA_SUCCESS);
	expect(driver.cuMemFree_v2(memory) == CUDA_SUCCESS);
	client_settle();
	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_MEMORY2));
	expect(client_memory_count() == 2);
	expect(client_memory(0)->operation == XT_CUPTI_MEMORY_ALLOC);
	expect(client_memory(1)->operation == XT_CUPTI_MEMORY_RELEASE);
	for (size_t i = 0; i < 2; i++) {
		expect(client_memory(i)->address == memory);
		expect(client_memory(i)->bytes == 3 << 20);
		expect(client_memory(i)->memory_kind == XT_CUPTI_MEMORY_DEVICE);
		expect(client_memory(i)->timestamp_ns + CLOCK_ERROR_NS > before_ns);
		expect(client_memory(i)->timestamp_ns < client_now_ns() + CLOCK_ERROR_NS);
	}
	return true;
}

/* The tracer tells by this whether a free is safe to record. */
static bool pooled_memory_is_told_apart(void)
{
	CUdeviceptr pooled, other;
	CUmemoryPool pool;
	CUstream stream;
	cuuint64_t bytes = 0;

	expect(!driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	expect(!driver.cuMemAlloc_v2(&other, 100) && !driver.cuMemAllocAsync(&pooled, 100, stream));
	expect(!driver.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, other) &&
	       !pool);
	expect(!driver.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pooled) &&
	       pool);
	expect(!driver.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) &&
	       bytes >= 100);
	expect(!driver.cuMemFreeAsync(pooled, stream) && !driver.cuMemFreeAsync(other, stream));
	expect(!driver.cuStreamSynchronize(stream) && !driver.cuStreamDestroy_v2(stream));
	return true;
}

static bool disabled_kind_is_silent(void)
{
	uint32_t word = 7;
	CUdeviceptr memory;

	client_clear();
	expect(driver.cuMemAlloc_v2(&memory, sizeof(word)) == CUDA_SUCCESS);
	expect(driver.cuMemcpyHtoD_v2(memory, &word, sizeof(word)) == CUDA_SUCCESS);
	expect(driver.cuMemFree_v2(memory) == CUDA_SUCCESS);
	client_settle();
	expect(client_memcpy_count() == 0);
	return true;
}

/* Recording stops while the GPU is busy: what was launched before still arrives. */
static bool running_kernels_survive_disabling(void)
{
	client_clear();
	for (int i = 0; i < 10; i++)
		expect(launch_spin(NULL, 5000000) == CUDA_SUCCESS);
	expect(!cupti.cuptiActivityDisable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL));
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	client_settle();
	expect(!cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL));
	expect(client_kernel_count() == 10);
	for (size_t i = 0; i < 10; i++)
		expect(client_kernel(i)->record.start_ns < client_kernel(i)->record.end_ns);
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	client_settle();
	expect(client_kernel_count() == 11);
	return true;
}

const struct check record_checks[] = {
	{"record_belongs_to_its_launch", record_belongs_to_its_launch},
	{"record_names_context_and_device", record_names_context_and_device},
	{"timestamp_is_the_registered_clock", timestamp_is_the_registered_clock},
	{"times_are_on_the_registered_clock", times_are_on_the_registered_clock},
	{"kernels_of_a_stream_do_not_overlap", kernels_of_a_stream_do_not_overlap},
	{"streams_have_ids_of_their_own", streams_have_ids_of_their_own},
	{"own_default_stream_has_its_own_id", own_default_stream_has_its_own_id},
	{"contexts_have_ids_of_their_own", contexts_have_ids_of_their_own},
	{"copies_and_sets_are_recorded", copies_and_sets_are_recorded},
	{"unheard_release_bears_another_id", unheard_release_bears_another_id},
	{"memory_records_belong_to_their_calls", memory_records_belong_to_their_calls},
	{"allocations_are_recorded", allocations_are_recorded},
	{"pooled_memory_is_told_apart", pooled_memory_is_told_apart},
	{"disabled_kind_is_silent", disabled_kind_is_silent},
	{"running_kernels_survive_disabling", running_kernels_survive_disabling},
	{NULL, NULL},
};
