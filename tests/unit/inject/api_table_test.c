/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects API calls by name: names as CUPTI reports them, including variants and later functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cupti/cupti.h"

#define NONE XT_API_CLASSES

static const struct {
	const char *name;
	uint32_t class;
} expected[] = {
	{"cuLaunchKernel", XT_API_LAUNCH},
	{"cuLaunchKernel_ptsz", XT_API_LAUNCH},
	{"cuLaunchKernelEx", XT_API_LAUNCH},
	{"cuLaunchKernelEx_ptsz", XT_API_LAUNCH},
	{"cuLaunch", XT_API_LAUNCH},
	{"cuLaunchGridAsync", XT_API_LAUNCH},
	{"cuLaunchCooperativeKernel", XT_API_LAUNCH},
	{"cuLaunchCooperativeKernelMultiDevice", XT_API_LAUNCH},
	{"cuLaunchHostFunc", XT_API_OTHER},
	{"cuLaunchHostFunc_ptsz", XT_API_OTHER},
	{"cuStreamAddCallback", XT_API_OTHER},
	{"cuMemAdvise_v2", XT_API_OTHER},
	{"cuMemDiscardBatchAsync", XT_API_OTHER},
	{"cuStreamAttachMemAsync_ptsz", XT_API_OTHER},
	{"cuGraphicsMapResources", XT_API_OTHER},
	{"cuGraphicsUnmapResources_ptsz", XT_API_OTHER},
	{"cuGraphLaunch", XT_API_GRAPH_LAUNCH},
	{"cuGraphLaunch_ptsz", XT_API_GRAPH_LAUNCH},
	{"cuMemcpyHtoD_v2", XT_API_COPY},
	{"cuMemcpyHtoDAsync_v2_ptsz", XT_API_COPY},
	{"cuMemcpy3DPeerAsync", XT_API_COPY},
	{"cuMemcpyBatchAsync", XT_API_COPY},
	{"cuMemPrefetchAsync", XT_API_COPY},
	{"cuMemPrefetchBatchAsync", XT_API_COPY},
	{"cuMemDiscardAndPrefetchBatchAsync", XT_API_COPY},
	{"cuMemBatchDecompressAsync", XT_API_COPY},
	{"cuMemsetD8_v2", XT_API_SET},
	{"cuMemsetD2D32Async_ptsz", XT_API_SET},
	{"cuMemAlloc_v2", XT_API_ALLOC},
	{"cuMemAllocAsync_ptsz", XT_API_ALLOC},
	{"cuMemAllocFromPoolAsync", XT_API_ALLOC},
	{"cuMemAllocHost_v2", XT_API_ALLOC},
	{"cuMemAllocManaged", XT_API_ALLOC},
	{"cuMemAllocPitch_v2", XT_API_ALLOC},
	{"cuMemHostAlloc", XT_API_ALLOC},
	{"cuMemHostRegister_v2", XT_API_ALLOC},
	{"cuMemCreate", XT_API_ALLOC},
	{"cuMemMap", XT_API_ALLOC},
	{"cuMemMapArrayAsync", XT_API_ALLOC},
	{"cuMemAddressReserve", XT_API_ALLOC},
	{"cuMemSetAccess", XT_API_ALLOC},
	{"cuMemImportFromShareableHandle", XT_API_ALLOC},
	{"cuMemPoolImportPointer", XT_API_ALLOC},
	{"cuMulticastCreate", XT_API_ALLOC},
	{"cuMulticastAddDevice", XT_API_ALLOC},
	{"cuMulticastBindMem", XT_API_ALLOC},
	{"cuIpcOpenMemHandle_v2", XT_API_ALLOC},
	{"cuImportExternalMemory", XT_API_ALLOC},
	{"cuExternalMemoryGetMappedBuffer", XT_API_ALLOC},
	{"cuArrayCreate_v2", XT_API_ALLOC},
	{"cuArray3DCreate_v2", XT_API_ALLOC},
	{"cuMipmappedArrayCreate", XT_API_ALLOC},
	{"cuMemFree_v2", XT_API_FREE},
	{"cuMemFreeAsync_ptsz", XT_API_FREE},
	{"cuMemFreeHost", XT_API_FREE},
	{"cuMemHostUnregister", XT_API_FREE},
	{"cuMemUnmap", XT_API_FREE},
	{"cuMemRelease", XT_API_FREE},
	{"cuMemAddressFree", XT_API_FREE},
	{"cuMemPoolTrimTo", XT_API_FREE},
	{"cuDeviceGraphMemTrim", XT_API_FREE},
	{"cuMulticastUnbind", XT_API_FREE},
	{"cuIpcCloseMemHandle", XT_API_FREE},
	{"cuDestroyExternalMemory", XT_API_FREE},
	{"cuArrayDestroy", XT_API_FREE},
	{"cuMipmappedArrayDestroy", XT_API_FREE},
	{"cuCtxSynchronize", XT_API_SYNC},
	{"cuStreamSynchronize_ptsz", XT_API_SYNC},
	{"cuEventSynchronize", XT_API_SYNC},
	{"cuEventRecord", XT_API_EVENT},
	{"cuEventRecordWithFlags_ptsz", XT_API_EVENT},
	{"cuStreamWaitEvent", XT_API_EVENT},
	{"cuStreamWaitEvent_ptsz", XT_API_EVENT},
	{"cuStreamWaitValue32_v2", XT_API_EVENT},
	{"cuStreamWriteValue64_v2_ptsz", XT_API_EVENT},
	{"cuStreamBatchMemOp_v2", XT_API_EVENT},
	{"cuCtxRecordEvent", XT_API_EVENT},
	{"cuGreenCtxWaitEvent", XT_API_EVENT},
	{"cuSignalExternalSemaphoresAsync", XT_API_EVENT},
	{"cuWaitExternalSemaphoresAsync_ptsz", XT_API_EVENT},
	{"cuModuleLoadData", XT_API_MODULE},
	{"cuModuleLoadDataEx", XT_API_MODULE},
	{"cuModuleUnload", XT_API_MODULE},
	{"cuLibraryLoadFromFile", XT_API_MODULE},
	{"cuLibraryUnload", XT_API_MODULE},
	{"cuLinkCreate_v2", XT_API_MODULE},
	{"cuLinkAddData_v2", XT_API_MODULE},
	{"cuLinkAddFile_v2", XT_API_MODULE},
	{"cuLinkComplete", XT_API_MODULE},
	{"cuLinkDestroy", XT_API_MODULE},
	{"cuFuncLoad", XT_API_MODULE},
	{"cuGraphCreate", XT_API_GRAPH},
	{"cuGraphDestroy", XT_API_GRAPH},
	{"cuGraphDestroyNode", XT_API_GRAPH},
	{"cuGraphAddNode_v2", XT_API_GRAPH},
	{"cuGraphAddDependencies_v2", XT_API_GRAPH},
	{"cuGraphRemoveDependencies_v2", XT_API_GRAPH},
	{"cuGraphConditionalHandleCreate", XT_API_GRAPH},
	{"cuGraphKernelNodeSetParams_v2", XT_API_GRAPH},
	{"cuGraphKernelNodeSetAttribute", XT_API_GRAPH},
	{"cuGraphKernelNodeCopyAttributes", XT_API_GRAPH},
	{"cuGraphMemcpyNodeSetParams", XT_API_GRAPH},
	{"cuGraphNodeSetParams", XT_API_GRAPH},
	{"cuGraphNodeSetEnabled", XT_API_GRAPH},
	{"cuGraphExecKernelNodeSetParams_v2", XT_API_GRAPH},
	{"cuGraphExecMemsetNodeSetParams", XT_API_GRAPH},
	{"cuGraphExecChildGraphNodeSetParams", XT_API_GRAPH},
	{"cuGraphExecEventRecordNodeSetEvent", XT_API_GRAPH},
	{"cuGraphExecNodeSetParams", XT_API_GRAPH},
	{"cuGraphExecDestroy", XT_API_GRAPH},
	{"cuGraphUpload_ptsz", XT_API_GRAPH},
	{"cuGraphRetainUserObject", XT_API_GRAPH},
	{"cuStreamBeginCaptureToGraph", XT_API_GRAPH},
	{"cuStreamUpdateCaptureDependencies_v2", XT_API_GRAPH},
	{"cuGraphAddKernelNode_v2", XT_API_GRAPH},
	{"cuGraphInstantiateWithFlags", XT_API_GRAPH},
	{"cuGraphExecUpdate_v2", XT_API_GRAPH},
	{"cuStreamBeginCapture_v2", XT_API_GRAPH},
	{"cuStreamEndCapture", XT_API_GRAPH},
	{"cuCtxCreate_v4", XT_API_LIFE},
	{"cuDevicePrimaryCtxRetain", XT_API_LIFE},
	{"cuStreamCreateWithPriority", XT_API_LIFE},
	{"cuEventDestroy_v2", XT_API_LIFE},
	{"cuMemPoolCreate", XT_API_LIFE},
	{"cuMemPoolImportFromShareableHandle", XT_API_LIFE},
	{"cuMemPoolDestroy", XT_API_LIFE},
	{"cuCtxAttach", XT_API_LIFE},
	{"cuCtxDetach", XT_API_LIFE},
	{"cuCtxFromGreenCtx", XT_API_LIFE},
	{"cuCtxEnablePeerAccess", XT_API_LIFE},
	{"cuGreenCtxCreate", XT_API_LIFE},
	{"cuGreenCtxStreamCreate", XT_API_LIFE},
	{"cuStreamDestroy_v2", XT_API_LIFE},
	{"cuIpcOpenEventHandle", XT_API_LIFE},
	{"cuImportExternalSemaphore", XT_API_LIFE},
	{"cuDestroyExternalSemaphore", XT_API_LIFE},
	/* Too frequent and too cheap to record. */
	{"cuCtxGetCurrent", NONE},
	{"cuCtxSetCurrent", NONE},
	{"cuStreamQuery", NONE},
	{"cuEventQuery", NONE},
	{"cuModuleGetFunction", NONE},
	{"cuMemGetInfo_v2", NONE},
	{"cuGraphGetNodes", NONE},
	{"cuGraphNodeGetType", NONE},
	{"cuGraphNodeFindInClone", NONE},
	{"cuGraphKernelNodeGetParams_v2", NONE},
	{"cuGraphChildGraphNodeGetGraph", NONE},
	{"cuGraphExecGetFlags", NONE},
	{"cuGraphDebugDotPrint", NONE},
	{"cuGraphicsResourceSetMapFlags_v2", NONE},
	{"cuGraphicsUnregisterResource", NONE},
	{"cuDeviceSetGraphMemAttribute", NONE},
	{"cuMemGetAddressRange_v2", NONE},
	{"cuMemHostGetDevicePointer_v2", NONE},
	{"cuMemPoolSetAttribute", NONE},
	{"cuMemRangeGetAttribute", NONE},
	{"cuMulticastGetGranularity", NONE},
	{"cuArrayGetDescriptor_v2", NONE},
	{"cuMipmappedArrayGetLevel", NONE},
	{"cuIpcGetMemHandle", NONE},
	{"cuCtxPushCurrent_v2", NONE},
	{"cuFuncIsLoaded", NONE},
	{"cuFuncSetAttribute", NONE},
	{"cuKernelGetFunction", NONE},
	{"cuLibraryGetKernel", NONE},
	{"cuStreamGetCaptureInfo_v3", NONE},
	{"cuEventElapsedTime_v2", NONE},
	{"cuProfilerStart", NONE},
	{"cuGetProcAddress", NONE},
	{"cuDeviceGet", NONE},
	{"cuStreamIsCapturing", NONE},
	{"cuInit", NONE},
	{"", NONE},
	{"cu", NONE},
	{"cudaLaunchKernel_v7000", NONE},
};
#define EXPECTED_COUNT (sizeof(expected) / sizeof(*expected))

static void classifies_by_name(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < EXPECTED_COUNT; i++)
		if (api_class_of(expected[i].name) != expected[i].class)
			fail_msg("%s is of class %u", expected[i].name,
				 api_class_of(expected[i].name));
}

static void finds_node_changes(void **unused)
{
	(void)unused;
	assert_int_equal(api_use_of("cuGraphKernelNodeSetParams_v2"), API_SETS_NODE);
	assert_int_equal(api_use_of("cuGraphMemcpyNodeSetParams"), API_SETS_NODE);
	assert_int_equal(api_use_of("cuGraphNodeSetParams"), API_SETS_NODE);
	assert_int_equal(api_use_of("cuGraphExecKernelNodeSetParams_v2"), API_SETS_EXEC_NODE);
	assert_int_equal(api_use_of("cuGraphExecMemsetNodeSetParams"), API_SETS_EXEC_NODE);
	assert_int_equal(api_use_of("cuGraphExecNodeSetParams"), API_SETS_EXEC_NODE);
	assert_int_equal(api_use_of("cuGraphExecChildGraphNodeSetParams"),
			 API_SETS_EXEC_NODE | API_SETS_EXEC_CHILD);
	assert_int_equal(api_use_of("cuGraphExecUpdate"), API_UPDATES_EXEC);
	assert_int_equal(api_use_of("cuGraphExecUpdate_v2"), API_UPDATES_EXEC);
	assert_int_equal(api_use_of("cuGraphKernelNodeGetParams_v2"), 0);
	assert_int_equal(api_use_of("cuGraphInstantiateWithParams_ptsz"), API_INSTANTIATES_GRAPH);
	assert_int_equal(api_use_of("cuGraphAddKernelNode_v2"), API_ADDS_KERNEL_NODE);
	assert_int_equal(api_use_of("cuGraphAddNode"), API_ADDS_NODE);
	assert_int_equal(api_use_of("cuGraphAddNode_v2"), API_ADDS_NODE_V2);
	assert_int_equal(api_use_of("cuGraphKernelNodeSetAttribute"), 0);
}

static void gives_each_class_a_level(void **unused)
{
	(void)unused;
	assert_int_equal(api_level_of(XT_API_LAUNCH), API_LEVEL_LAUNCH);
	assert_int_equal(api_level_of(XT_API_GRAPH_LAUNCH), API_LEVEL_LAUNCH);
	for (uint32_t class = XT_API_COPY; class <= XT_API_SYNC; class ++)
		assert_int_equal(api_level_of(class), API_LEVEL_WORK);
	assert_int_equal(api_level_of(XT_API_MODULE), API_LEVEL_WORK);
	assert_int_equal(api_level_of(XT_API_EVENT), API_LEVEL_ALL);
	for (uint32_t class = XT_API_GRAPH; class < XT_API_CLASSES; class ++)
		assert_int_equal(api_level_of(class), API_LEVEL_ALL);
	assert_int_equal(api_level_of(XT_API_OTHER), API_LEVEL_ALL);
}

/* A CUPTI whose driver API is the table above, with ids from 100. */
#define FIRST_CBID 100

static uint32_t name_of(uint32_t domain, uint32_t cbid, const char **name)
{
	if (domain != XT_CUPTI_CB_DOMAIN_DRIVER_API || cbid < FIRST_CBID ||
	    cbid >= FIRST_CBID + EXPECTED_COUNT)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	*name = expected[cbid - FIRST_CBID].name;
	return XT_CUPTI_SUCCESS;
}

static uint32_t no_name_of(uint32_t domain, uint32_t cbid, const char **name)
{
	(void)domain, (void)cbid, (void)name;
	return XT_CUPTI_ERROR_NOT_SUPPORTED;
}

static void fill(enum api_level level)
{
	free(recorded_apis.apis);
	memset(&recorded_apis, 0, sizeof(recorded_apis));
	assert_int_equal(api_table_fill(level), 0);
}

static const struct recorded_api *find(const char *name)
{
	const struct recorded_api *found = NULL;

	for (uint32_t i = 0; i < recorded_apis.count; i++)
		if (!strcmp(recorded_apis.apis[i].name, name)) {
			assert_null(found);
			found = &recorded_apis.apis[i];
		}
	return found;
}

static void check_level(enum api_level level)
{
	cupti.cuptiGetCallbackName = name_of;
	fill(level);
	for (uint32_t i = 0; i < EXPECTED_COUNT; i++) {
		const struct recorded_api *api = find(expected[i].name);
		uint32_t class = expected[i].class;
		bool launches = class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH;

		if (class == NONE || api_level_of(class) > level) {
			assert_null(api);
			continue;
		}
		assert_non_null(api);
		assert_int_equal(api->id, XT_CUPTI_CB_DOMAIN_DRIVER_API << 16 | (FIRST_CBID + i));
		assert_int_equal(api->class, class);
		assert_int_equal(api_makes_kernels(api->id), launches);
	}
}

static void selects_by_level(void **unused)
{
	uint32_t counts[3];

	(void)unused;
	for (uint32_t level = API_LEVEL_LAUNCH; level <= API_LEVEL_ALL; level++) {
		check_level(level);
		counts[level] = recorded_apis.count;
	}
	assert_true(counts[0] > 0 && counts[0] < counts[1] && counts[1] < counts[2]);
}

static void accepts_any_id(void **unused)
{
	(void)unused;
	check_level(API_LEVEL_WORK);
	assert_false(api_makes_kernels(0));
	assert_false(api_makes_kernels(UINT32_MAX));
	assert_false(api_makes_kernels(XT_CUPTI_CB_DOMAIN_DRIVER_API << 16 | 0xffff));
}

/* Without names, launches are known by their ids. */
static void knows_launches_without_names(void **unused)
{
	uint32_t (*const sources[])(uint32_t, uint32_t, const char **) = {NULL, no_name_of};

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		const struct recorded_api *api;

		cupti.cuptiGetCallbackName = sources[i];
		fill(API_LEVEL_ALL);
		assert_int_equal(recorded_apis.count, 12);
		api = find("cuLaunchKernel");
		assert_non_null(api);
		assert_int_equal(api->id & 0xffff, XT_CUPTI_CBID_cuLaunchKernel);
		api = find("cuGraphLaunch");
		assert_non_null(api);
		assert_int_equal(api->class, XT_API_GRAPH_LAUNCH);
		assert_true(api_makes_kernels(api->id));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classifies_by_name),
		cmocka_unit_test(finds_node_changes),
		cmocka_unit_test(gives_each_class_a_level),
		cmocka_unit_test(selects_by_level),
		cmocka_unit_test(accepts_any_id),
		cmocka_unit_test(knows_launches_without_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
