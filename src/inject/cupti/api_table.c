/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the recorded API calls. Runs once, in the thread of InitializeInjection(); all threads
 * read the result.
 */
#include "inject/cupti/api_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cupti/cupti.h"
#include "inject/runtime/hot_state.h"

struct api_table recorded_apis;
HOT_STATE uint32_t api_uses[API_CBID_END];
static uint8_t classes[API_CBID_END]; /* of recorded calls; else XT_API_OTHER */

#define NOT_RECORDED XT_API_CLASSES

/*
 * Classes by the start of a name and a part of it; the first match counts, so exceptions precede
 * their families. Calls that only query or set an option are not recorded.
 */
static const struct {
	const char *beginning;
	const char *part; /* NULL: any */
	uint32_t class;
} rules[] = {
	{"cuLaunchHostFunc", NULL, XT_API_OTHER},
	{"cuStreamAddCallback", NULL, XT_API_OTHER},
	{"cuLaunch", NULL, XT_API_LAUNCH},
	{"cuGraphLaunch", NULL, XT_API_GRAPH_LAUNCH},

	{"cuMemcpy", NULL, XT_API_COPY},
	{"cuMemPrefetch", NULL, XT_API_COPY},
	{"cuMemDiscardAndPrefetch", NULL, XT_API_COPY},
	{"cuMemBatchDecompress", NULL, XT_API_COPY},
	{"cuMemset", NULL, XT_API_SET},
	{"cuMemAdvise", NULL, XT_API_OTHER},
	{"cuMemDiscard", NULL, XT_API_OTHER},
	{"cuStreamAttachMem", NULL, XT_API_OTHER},

	{"cuMemAlloc", NULL, XT_API_ALLOC},
	{"cuMemHostAlloc", NULL, XT_API_ALLOC},
	{"cuMemHostRegister", NULL, XT_API_ALLOC},
	{"cuMemPeerRegister", NULL, XT_API_ALLOC},
	{"cuMemAddressReserve", NULL, XT_API_ALLOC},
	{"cuMemCreate", NULL, XT_API_ALLOC},
	{"cuMemMap", NULL, XT_API_ALLOC},
	{"cuMemSetAccess", NULL, XT_API_ALLOC},
	{"cuMemImport", NULL, XT_API_ALLOC},
	{"cuMemPoolImportPointer", NULL, XT_API_ALLOC},
	{"cuMulticastCreate", NULL, XT_API_ALLOC},
	{"cuMulticastAddDevice", NULL, XT_API_ALLOC},
	{"cuMulticastBind", NULL, XT_API_ALLOC},
	{"cuArrayCreate", NULL, XT_API_ALLOC},
	{"cuArray3DCreate", NULL, XT_API_ALLOC},
	{"cuMipmappedArrayCreate", NULL, XT_API_ALLOC},
	{"cuIpcOpenMemHandle", NULL, XT_API_ALLOC},
	{"cuImportExternalMemory", NULL, XT_API_ALLOC},
	{"cuExternalMemoryGetMapped", NULL, XT_API_ALLOC},

	{"cuMemFree", NULL, XT_API_FREE},
	{"cuMemHostUnregister", NULL, XT_API_FREE},
	{"cuMemPeerUnregister", NULL, XT_API_FREE},
	{"cuMemAddressFree", NULL, XT_API_FREE},
	{"cuMemRelease", NULL, XT_API_FREE},
	{"cuMemUnmap", NULL, XT_API_FREE},
	{"cuMemPoolTrimTo", NULL, XT_API_FREE},
	{"cuDeviceGraphMemTrim", NULL, XT_API_FREE},
	{"cuMulticastUnbind", NULL, XT_API_FREE},
	{"cuArrayDestroy", NULL, XT_API_FREE},
	{"cuMipmappedArrayDestroy", NULL, XT_API_FREE},
	{"cuIpcCloseMemHandle", NULL, XT_API_FREE},
	{"cuDestroyExternalMemory", NULL, XT_API_FREE},

	{"cuCtxSynchronize", NULL, XT_API_SYNC},
	{"cuStreamSynchronize", NULL, XT_API_SYNC},
	{"cuEventSynchronize", NULL, XT_API_SYNC},

	{"cuEventRecord", NULL, XT_API_EVENT},
	{"cuCtxRecordEvent", NULL, XT_API_EVENT},
	{"cuCtxWaitEvent", NULL, XT_API_EVENT},
	{"cuGreenCtxRecordEvent", NULL, XT_API_EVENT},
	{"cuGreenCtxWaitEvent", NULL, XT_API_EVENT},
	{"cuStreamWaitEvent", NULL, XT_API_EVENT},
	{"cuStreamWaitValue", NULL, XT_API_EVENT},
	{"cuStreamWriteValue", NULL, XT_API_EVENT},
	{"cuStreamBatchMemOp", NULL, XT_API_EVENT},
	{"cuSignalExternalSemaphores", NULL, XT_API_EVENT},
	{"cuWaitExternalSemaphores", NULL, XT_API_EVENT},

	{"cuModuleLoad", NULL, XT_API_MODULE},
	{"cuModuleUnload", NULL, XT_API_MODULE},
	{"cuLibraryLoad", NULL, XT_API_MODULE},
	{"cuLibraryUnload", NULL, XT_API_MODULE},
	{"cuFuncLoad", NULL, XT_API_MODULE},
	{"cuLink", NULL, XT_API_MODULE},

	{"cuGraphicsMapResources", NULL, XT_API_OTHER},
	{"cuGraphicsUnmapResources", NULL, XT_API_OTHER},
	{"cuGraphics", NULL, NOT_RECORDED},
	{"cuGraph", "Get", NOT_RECORDED},
	{"cuGraphNodeFind", NULL, NOT_RECORDED},
	{"cuGraphDebug", NULL, NOT_RECORDED},
	{"cuGraph", NULL, XT_API_GRAPH},
	{"cuStreamBeginCapture", NULL, XT_API_GRAPH},
	{"cuStreamUpdateCapture", NULL, XT_API_GRAPH},
	{"cuStreamEndCapture", NULL, XT_API_GRAPH},

	{"cuCtxCreate", NULL, XT_API_LIFE},
	{"cuCtxDestroy", NULL, XT_API_LIFE},
	{"cuCtxAttach", NULL, XT_API_LIFE},
	{"cuCtxDetach", NULL, XT_API_LIFE},
	{"cuCtxFromGreenCtx", NULL, XT_API_LIFE},
	{"cuCtxEnablePeerAccess", NULL, XT_API_LIFE},
	{"cuCtxDisablePeerAccess", NULL, XT_API_LIFE},
	{"cuGreenCtxCreate", NULL, XT_API_LIFE},
	{"cuGreenCtxDestroy", NULL, XT_API_LIFE},
	{"cuGreenCtxStreamCreate", NULL, XT_API_LIFE},
	{"cuDevicePrimaryCtxRetain", NULL, XT_API_LIFE},
	{"cuDevicePrimaryCtxRelease", NULL, XT_API_LIFE},
	{"cuDevicePrimaryCtxReset", NULL, XT_API_LIFE},
	{"cuStreamCreate", NULL, XT_API_LIFE},
	{"cuStreamDestroy", NULL, XT_API_LIFE},
	{"cuEventCreate", NULL, XT_API_LIFE},
	{"cuEventDestroy", NULL, XT_API_LIFE},
	{"cuIpcOpenEventHandle", NULL, XT_API_LIFE},
	{"cuImportExternalSemaphore", NULL, XT_API_LIFE},
	{"cuDestroyExternalSemaphore", NULL, XT_API_LIFE},
	{"cuMemPoolCreate", NULL, XT_API_LIFE},
	{"cuMemPoolImport", NULL, XT_API_LIFE},
	{"cuMemPoolDestroy", NULL, XT_API_LIFE},
};

static const enum api_level class_levels[XT_API_CLASSES] = {
	[XT_API_LAUNCH] = API_LEVEL_LAUNCH, [XT_API_GRAPH_LAUNCH] = API_LEVEL_LAUNCH,
	[XT_API_COPY] = API_LEVEL_WORK,	    [XT_API_SET] = API_LEVEL_WORK,
	[XT_API_ALLOC] = API_LEVEL_WORK,    [XT_API_FREE] = API_LEVEL_WORK,
	[XT_API_SYNC] = API_LEVEL_WORK,	    [XT_API_EVENT] = API_LEVEL_ALL,
	[XT_API_MODULE] = API_LEVEL_WORK,   [XT_API_GRAPH] = API_LEVEL_ALL,
	[XT_API_LIFE] = API_LEVEL_ALL,	    [XT_API_OTHER] = API_LEVEL_ALL,
};

uint32_t api_class_of(const char *name)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (!strncmp(name, rules[i].beginning, strlen(rules[i].beginning)) &&
		    (!rules[i].part || strstr(name, rules[i].part)))
			return rules[i].class;
	return NOT_RECORDED;
}

/* By the start of a name and a part of it, as in `rules`. */
static const struct {
	const char *beginning;
	const char *part;
	uint32_t use;
} uses[] = {
	{"cuMemFreeAsync", NULL, API_FREES_ASYNC},
	{"cuCtxCreate", NULL, API_DELAYS_STOP},
	{"cuCtxDestroy", NULL, API_DELAYS_STOP},
	{"cuCtxDetach", NULL, API_DELAYS_STOP},
	{"cuCtxFromGreenCtx", NULL, API_DELAYS_STOP},
	{"cuGLCtxCreate", NULL, API_DELAYS_STOP},
	{"cuVDPAUCtxCreate", NULL, API_DELAYS_STOP},
	{"cuGreenCtxCreate", NULL, API_DELAYS_STOP},
	{"cuGreenCtxDestroy", NULL, API_DELAYS_STOP},
	{"cuDevicePrimaryCtxRe", NULL, API_DELAYS_STOP}, /* Retain, Release, Reset */
	{"cuCtxSynchronize", NULL, API_SYNCS_CONTEXT},
	{"cuStreamSynchronize", NULL, API_SYNCS_STREAM},
	{"cuGraphInstantiate", NULL, API_INSTANTIATES_GRAPH},
	{"cuGraphAddKernelNode", NULL, API_ADDS_KERNEL_NODE},
	{"cuGraphAddNode_v2", NULL, API_ADDS_NODE_V2},
	{"cuGraphAddNode", NULL, API_ADDS_NODE},
	{"cuGraphExecUpdate", NULL, API_UPDATES_EXEC},
	{"cuGraphExecChildGraphNodeSetParams", NULL, API_SETS_EXEC_NODE | API_SETS_EXEC_CHILD},
	{"cuGraph", "ChildGraph", 0},
	{"cuGraphExec", "NodeSetParams", API_SETS_EXEC_NODE},
	{"cuGraph", "NodeSetParams", API_SETS_NODE},
};

uint32_t api_use_of(const char *name)
{
	for (size_t i = 0; i < sizeof(uses) / sizeof(*uses); i++)
		if (!strncmp(name, uses[i].beginning, strlen(uses[i].beginning)) &&
		    (!uses[i].part || strstr(name, uses[i].part)))
			return uses[i].use;
	return 0;
}

uint32_t api_class(uint32_t id)
{
	return (id & 0xffff) < API_CBID_END ? classes[id & 0xffff] : XT_API_OTHER;
}

bool api_makes_kernels(uint32_t id)
{
	uint32_t class = api_class(id);

	return class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH;
}

enum api_level api_level_of(uint32_t class)
{
	return class_levels[class];
}

static void add(enum api_level level, uint32_t cbid, const char *name)
{
	uint32_t class = api_class_of(name);
	struct recorded_api *api = &recorded_apis.apis[recorded_apis.count];

	api_uses[cbid] = api_use_of(name);
	if (cupti.version >= XT_CUPTI_OF_CUDA13)
		api_uses[cbid] &= ~(uint32_t)API_SYNCS;
	if (class == NOT_RECORDED || api_level_of(class) > level) {
		api_uses[cbid] |= API_IS_UNRECORDED;
		return;
	}
	api->id = (uint32_t)XT_CUPTI_CB_DOMAIN_DRIVER_API << 16 | cbid;
	api->class = class;
	api->name = name;
	if (class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH || class == XT_API_COPY ||
	    class == XT_API_SET)
		api_uses[cbid] |= API_MAKES_WORK;
	if (class == XT_API_GRAPH_LAUNCH)
		api_uses[cbid] |= API_LAUNCHES_GRAPH;
	classes[cbid] = (uint8_t) class;
	recorded_apis.count++;
}

/* Calls that launch kernels, for a CUPTI that does not report names. */
static void add_known_launches(enum api_level level)
{
#define KNOWN_LAUNCH(name, id, class) {id, #name},
	static const struct {
		uint32_t cbid;
		const char *name;
	} known[] = {XT_CUPTI_DRIVER_LAUNCHES(KNOWN_LAUNCH)};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		add(level, known[i].cbid, known[i].name);
}

int api_table_fill(enum api_level level)
{
	uint32_t failed_count = 0;

	/* An earlier attempt to start may have filled it. */
	free(recorded_apis.apis);
	recorded_apis.count = 0;
	recorded_apis.apis = calloc(API_CBID_END, sizeof(*recorded_apis.apis));
	if (!recorded_apis.apis)
		return -ENOMEM;
	for (uint32_t cbid = 1; cupti.cuptiGetCallbackName && cbid < API_CBID_END; cbid++) {
		const char *name = NULL;
		uint32_t result =
			cupti.cuptiGetCallbackName(XT_CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name);

		if (result == XT_CUPTI_SUCCESS && name)
			add(level, cbid, name);
		else if (cupti_has_failed(result))
			failed_count++;
	}
	if (!recorded_apis.count)
		add_known_launches(level);
	atomic_store(&cupti_lost_apis, failed_count);
	return 0;
}
