/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the callback API: which callbacks run, in which order, with which ids.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "conformance.h"

#define DRIVER_API XT_CUPTI_CB_DOMAIN_DRIVER_API
#define RESOURCE   XT_CUPTI_CB_DOMAIN_RESOURCE

static const struct note *enter_of(uint32_t cbid)
{
	return find_note(DRIVER_API, cbid, XT_CUPTI_API_ENTER, 0);
}

static const struct note *exit_of(uint32_t cbid)
{
	return find_note(DRIVER_API, cbid, XT_CUPTI_API_EXIT, 0);
}

static bool injection_is_called_once(void)
{
	expect(driver_probed("probe_injection_count") == 1);
	expect(driver.cuInit(0) == CUDA_SUCCESS);
	expect(driver_probed("probe_injection_count") == 1);
	return true;
}

/* So other threads can tell whether cuInit() has returned. */
static bool driver_is_not_ready_during_injection(void)
{
	expect(driver_probed("probe_device_result") == CUDA_ERROR_NOT_INITIALIZED);
	return true;
}

static bool second_subscriber_is_refused(void)
{
	void *second = NULL;

	expect(cupti.cuptiSubscribe(&second, (xt_cupti_callback)(void *)puts, NULL) ==
	       XT_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	return true;
}

static bool version_is_told(void)
{
	uint32_t version = 0;

	expect(cupti.cuptiGetVersion(&version) == XT_CUPTI_SUCCESS);
	expect(version >= 17); /* 11.8, the oldest supported version */
	return true;
}

static bool callback_names_are_told(void)
{
	const char *name = NULL;

	expect(!cupti.cuptiGetCallbackName(DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, &name));
	expect(!strcmp(name, "cuLaunchKernel"));
	expect(!cupti.cuptiGetCallbackName(DRIVER_API, XT_CUPTI_CBID_cuGraphLaunch_ptsz, &name));
	expect(!strcmp(name, "cuGraphLaunch_ptsz"));
	expect(!cupti.cuptiGetCallbackName(XT_CUPTI_CB_DOMAIN_RUNTIME_API,
					   XT_CUPTI_CBID_cudaLaunchKernel_v7000, &name));
	expect(!strcmp(name, "cudaLaunchKernel_v7000"));
	return true;
}

static bool launch_is_entered_then_left(void)
{
	const struct note *enter;
	const struct note *leave;

	client_clear();
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	expect(client_note_count() == 2);
	enter = client_note(0);
	leave = client_note(1);
	expect(enter->domain == DRIVER_API && leave->domain == DRIVER_API);
	expect(enter->cbid == XT_CUPTI_CBID_cuLaunchKernel && leave->cbid == enter->cbid);
	expect(enter->site == XT_CUPTI_API_ENTER && leave->site == XT_CUPTI_API_EXIT);
	expect(enter->correlation_id && enter->correlation_id == leave->correlation_id);
	expect(!strcmp(enter->function_name, "cuLaunchKernel"));
	return true;
}

static bool callbacks_run_on_the_calling_thread(void)
{
	client_clear();
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	expect(enter_of(XT_CUPTI_CBID_cuLaunchKernel)->tid == gettid());
	expect(exit_of(XT_CUPTI_CBID_cuLaunchKernel)->tid == gettid());
	return true;
}

static bool slot_is_shared_by_enter_and_exit(void)
{
	const struct note *leave;

	client_clear();
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	leave = exit_of(XT_CUPTI_CBID_cuLaunchKernel);
	expect(leave->has_slot);
	expect(leave->slot == (UINT64_C(0xfeed000000000000) | leave->correlation_id));
	return true;
}

static bool symbol_is_the_mangled_name(void)
{
	client_clear();
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	expect(!strcmp(enter_of(XT_CUPTI_CBID_cuLaunchKernel)->symbol_name, EMPTY_NAME));
	expect(!strcmp(exit_of(XT_CUPTI_CBID_cuLaunchKernel)->symbol_name, EMPTY_NAME));
	return true;
}

static bool context_id_is_told(void)
{
	uint32_t id = 0;

	client_clear();
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	expect(!cupti.cuptiGetContextId(driver.context, &id));
	expect(enter_of(XT_CUPTI_CBID_cuLaunchKernel)->context_id == id);
	return true;
}

static bool result_is_told_at_exit(void)
{
	CUresult result;

	client_clear();
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	expect(exit_of(XT_CUPTI_CBID_cuLaunchKernel)->result == CUDA_SUCCESS);
	client_clear();
	result = driver.cuLaunchKernel(driver.empty, 1, 1, 1, 4096, 1, 1, 0, NULL, NULL, NULL);
	expect(result != CUDA_SUCCESS);
	expect(exit_of(XT_CUPTI_CBID_cuLaunchKernel)->result == result);
	client_settle();
	expect(client_kernel_count() == 0);
	return true;
}

static bool correlation_ids_grow(void)
{
	uint32_t last = 0;

	client_clear();
	for (int i = 0; i < 100; i++)
		expect(launch_empty(NULL) == CUDA_SUCCESS);
	expect(client_note_count() == 200);
	for (size_t i = 0; i < 200; i += 2) {
		expect(client_note(i)->correlation_id > last);
		last = client_note(i)->correlation_id;
		expect(client_note(i + 1)->correlation_id == last);
	}
	return true;
}

/* Other calls that launch one kernel. Each has its own callback, and a record with its id. */
static CUresult launch_by_ptsz(void)
{
	return driver.cuLaunchKernel_ptsz(driver.empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static CUlaunchConfig small_config(void)
{
	return (CUlaunchConfig){
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
	};
}

static CUresult launch_by_ex(void)
{
	CUlaunchConfig config = small_config();

	return driver.cuLaunchKernelEx(&config, driver.empty, NULL, NULL);
}

static CUresult launch_by_ex_ptsz(void)
{
	CUlaunchConfig config = small_config();

	return driver.cuLaunchKernelEx_ptsz(&config, driver.empty, NULL, NULL);
}

static CUresult launch_by_cooperative(void)
{
	return driver.cuLaunchCooperativeKernel(driver.empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL);
}

static CUresult launch_by_cooperative_ptsz(void)
{
	return driver.cuLaunchCooperativeKernel_ptsz(driver.empty, 1, 1, 1, 32, 1, 1, 0, NULL,
						     NULL);
}

static bool every_launch_function_is_seen(void)
{
	static const struct {
		uint32_t cbid;
		CUresult (*launch)(void);
	} ways[] = {
		{XT_CUPTI_CBID_cuLaunchKernel_ptsz, launch_by_ptsz},
		{XT_CUPTI_CBID_cuLaunchKernelEx, launch_by_ex},
		{XT_CUPTI_CBID_cuLaunchKernelEx_ptsz, launch_by_ex_ptsz},
		{XT_CUPTI_CBID_cuLaunchCooperativeKernel, launch_by_cooperative},
		{XT_CUPTI_CBID_cuLaunchCooperativeKernel_ptsz, launch_by_cooperative_ptsz},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		const struct note *enter;

		client_clear();
		expect(ways[i].launch() == CUDA_SUCCESS);
		client_settle();
		enter = enter_of(ways[i].cbid);
		expect(enter && exit_of(ways[i].cbid));
		expect(!strcmp(enter->symbol_name, EMPTY_NAME));
		expect(find_kernel(enter->correlation_id));
	}
	return true;
}

static bool disabled_callback_is_silent(void)
{
	client_clear();
	client_enable(DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, false);
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	client_enable(DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, true);
	client_settle();
	expect(client_note_count() == 0);
	expect(client_kernel_count() == 1);
	expect(launch_empty(NULL) == CUDA_SUCCESS);
	expect(client_note_count() == 2);
	return true;
}

static bool streams_are_announced(void)
{
	CUstream stream;

	client_clear();
	expect(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
	expect(count_notes(RESOURCE, XT_CUPTI_RESOURCE_STREAM_CREATED, 0) == 1);
	expect(driver.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
	expect(count_notes(RESOURCE, XT_CUPTI_RESOURCE_STREAM_DESTROY_STARTING, 0) == 1);
	return true;
}

static bool modules_are_announced(void)
{
	static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .entry other()\n{\n\tret;\n}\n";
	CUfunction function;
	CUmodule module;

	client_clear();
	expect(driver.cuModuleLoadData(&module, text) == CUDA_SUCCESS);
	expect(driver.cuModuleGetFunction(&function, module, "other") == CUDA_SUCCESS);
	expect(count_notes(RESOURCE, XT_CUPTI_RESOURCE_MODULE_LOADED, 0) == 1);
	expect(driver.cuModuleUnload(module) == CUDA_SUCCESS);
	expect(count_notes(RESOURCE, XT_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING, 0) == 1);
	return true;
}

static void *launch_many(void *failed_out)
{
	bool *failed = failed_out;

	*failed = driver.cuCtxSetCurrent(driver.context) != CUDA_SUCCESS;
	for (int i = 0; i < 1000; i++)
		*failed |= launch_empty(CU_STREAM_PER_THREAD) != CUDA_SUCCESS;
	return NULL;
}

static bool threads_are_told_apart(void)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	bool failed[THREADS];
	size_t enter_count = 0;

	client_clear();
	for (int i = 0; i < THREADS; i++)
		expect(!pthread_create(&threads[i], NULL, launch_many, &failed[i]));
	for (int i = 0; i < THREADS; i++)
		expect(!pthread_join(threads[i], NULL) && !failed[i]);
	client_settle();
	expect(client_kernel_count() == THREADS * 1000);
	for (size_t i = 0; i < client_note_count(); i++) {
		const struct note *note = client_note(i);

		if (note->domain != DRIVER_API || note->site != XT_CUPTI_API_ENTER)
			continue;
		enter_count++;
		expect(find_kernel(note->correlation_id));
	}
	expect(enter_count == THREADS * 1000);
	return true;
}

const struct check callback_checks[] = {
	{"injection_is_called_once", injection_is_called_once},
	{"driver_is_not_ready_during_injection", driver_is_not_ready_during_injection},
	{"version_is_told", version_is_told},
	{"callback_names_are_told", callback_names_are_told},
	{"second_subscriber_is_refused", second_subscriber_is_refused},
	{"launch_is_entered_then_left", launch_is_entered_then_left},
	{"callbacks_run_on_the_calling_thread", callbacks_run_on_the_calling_thread},
	{"slot_is_shared_by_enter_and_exit", slot_is_shared_by_enter_and_exit},
	{"symbol_is_the_mangled_name", symbol_is_the_mangled_name},
	{"context_id_is_told", context_id_is_told},
	{"result_is_told_at_exit", result_is_told_at_exit},
	{"correlation_ids_grow", correlation_ids_grow},
	{"every_launch_function_is_seen", every_launch_function_is_seen},
	{"disabled_callback_is_silent", disabled_callback_is_silent},
	{"streams_are_announced", streams_are_announced},
	{"modules_are_announced", modules_are_announced},
	{"threads_are_told_apart", threads_are_told_apart},
	{NULL, NULL},
};
