/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules by which API calls are chosen. Runs once, in the thread that calls
 * InitializeInjection(); what it leaves behind is read by all.
 */
#include "inject/api_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/cupti.h"

#define CBID_END 2048 /* beyond the last callback id of any CUPTI so far, with room */

struct api_table recorded_apis;
static bool launches[CBID_END];

#define NOT_RECORDED XT_API_CLASSES

/* By the beginning of the name; the first that fits counts. */
static const struct {
	const char *beginning;
	uint32_t class;
} rules[] = {
	{"cuLaunchHostFunc", NOT_RECORDED},
	{"cuLaunch", XT_API_LAUNCH},
	{"cuGraphLaunch", XT_API_GRAPH_LAUNCH},
	{"cuMemcpy", XT_API_COPY},
	{"cuMemPrefetch", XT_API_COPY},
	{"cuMemset", XT_API_SET},
	{"cuMemAlloc", XT_API_ALLOC},
	{"cuMemHostAlloc", XT_API_ALLOC},
	{"cuMemHostRegister", XT_API_ALLOC},
	{"cuMemCreate", XT_API_ALLOC},
	{"cuMemMap", XT_API_ALLOC},
	{"cuArrayCreate", XT_API_ALLOC},
	{"cuArray3DCreate", XT_API_ALLOC},
	{"cuMipmappedArrayCreate", XT_API_ALLOC},
	{"cuMemFree", XT_API_FREE},
	{"cuMemHostUnregister", XT_API_FREE},
	{"cuMemRelease", XT_API_FREE},
	{"cuMemUnmap", XT_API_FREE},
	{"cuArrayDestroy", XT_API_FREE},
	{"cuMipmappedArrayDestroy", XT_API_FREE},
	{"cuMemPoolTrimTo", XT_API_FREE},
	{"cuCtxSynchronize", XT_API_SYNC},
	{"cuStreamSynchronize", XT_API_SYNC},
	{"cuEventSynchronize", XT_API_SYNC},
	{"cuEventRecord", XT_API_EVENT},
	{"cuStreamWaitEvent", XT_API_EVENT},
	{"cuCtxRecordEvent", XT_API_EVENT},
	{"cuCtxWaitEvent", XT_API_EVENT},
	{"cuModuleLoad", XT_API_MODULE},
	{"cuModuleUnload", XT_API_MODULE},
	{"cuLibraryLoad", XT_API_MODULE},
	{"cuLibraryUnload", XT_API_MODULE},
	{"cuLinkComplete", XT_API_MODULE},
	{"cuGraphCreate", XT_API_GRAPH},
	{"cuGraphAdd", XT_API_GRAPH},
	{"cuGraphClone", XT_API_GRAPH},
	{"cuGraphInstantiate", XT_API_GRAPH},
	{"cuGraphExecUpdate", XT_API_GRAPH},
	{"cuGraphExecDestroy", XT_API_GRAPH},
	{"cuGraphDestroy", XT_API_GRAPH},
	{"cuGraphUpload", XT_API_GRAPH},
	{"cuStreamBeginCapture", XT_API_GRAPH},
	{"cuStreamEndCapture", XT_API_GRAPH},
	{"cuCtxCreate", XT_API_LIFE},
	{"cuCtxDestroy", XT_API_LIFE},
	{"cuDevicePrimaryCtxRetain", XT_API_LIFE},
	{"cuDevicePrimaryCtxRelease", XT_API_LIFE},
	{"cuDevicePrimaryCtxReset", XT_API_LIFE},
	{"cuStreamCreate", XT_API_LIFE},
	{"cuStreamDestroy", XT_API_LIFE},
	{"cuEventCreate", XT_API_LIFE},
	{"cuEventDestroy", XT_API_LIFE},
	{"cuMemPoolCreate", XT_API_LIFE},
	{"cuMemPoolDestroy", XT_API_LIFE},
};

static const enum api_level class_levels[XT_API_CLASSES] = {
	[XT_API_LAUNCH] = API_LEVEL_LAUNCH, [XT_API_GRAPH_LAUNCH] = API_LEVEL_LAUNCH,
	[XT_API_COPY] = API_LEVEL_WORK,	    [XT_API_SET] = API_LEVEL_WORK,
	[XT_API_ALLOC] = API_LEVEL_WORK,    [XT_API_FREE] = API_LEVEL_WORK,
	[XT_API_SYNC] = API_LEVEL_WORK,	    [XT_API_EVENT] = API_LEVEL_ALL,
	[XT_API_MODULE] = API_LEVEL_ALL,    [XT_API_GRAPH] = API_LEVEL_ALL,
	[XT_API_LIFE] = API_LEVEL_ALL,	    [XT_API_OTHER] = API_LEVEL_ALL,
};

uint32_t api_class_of(const char *name)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (!strncmp(name, rules[i].beginning, strlen(rules[i].beginning)))
			return rules[i].class;
	return NOT_RECORDED;
}

bool api_makes_kernels(uint32_t id)
{
	return (id & 0xffff) < CBID_END && launches[id & 0xffff];
}

enum api_level api_level_of(uint32_t class)
{
	return class_levels[class];
}

static void add(enum api_level level, uint32_t cbid, const char *name)
{
	uint32_t class = api_class_of(name);
	struct recorded_api *api = &recorded_apis.apis[recorded_apis.count];

	if (class == NOT_RECORDED || api_level_of(class) > level)
		return;
	api->id = (uint32_t)XT_CUPTI_CB_DOMAIN_DRIVER_API << 16 | cbid;
	api->class = class;
	api->name = name;
	launches[cbid] = class == XT_API_LAUNCH || class == XT_API_GRAPH_LAUNCH;
	recorded_apis.count++;
}

/* What launches kernels, for a CUPTI that does not tell names. */
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
	recorded_apis.apis = calloc(CBID_END, sizeof(*recorded_apis.apis));
	if (!recorded_apis.apis)
		return -ENOMEM;
	for (uint32_t cbid = 1; cupti.cuptiGetCallbackName && cbid < CBID_END; cbid++) {
		const char *name = NULL;

		if (cupti.cuptiGetCallbackName(XT_CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name) ==
			    XT_CUPTI_SUCCESS &&
		    name)
			add(level, cbid, name);
	}
	if (!recorded_apis.count)
		add_known_launches(level);
	return 0;
}
