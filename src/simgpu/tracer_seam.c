/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the driver half, and implements queries for ids, names and versions.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "simgpu/tracer.h"

static struct sim_seam *_Atomic seam;

void tracer_seam_connect(const struct sim_tracer *tracer)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	struct sim_seam *found = library ? dlsym(library, SIM_SEAM_SYMBOL) : NULL;

	if (!found || found->version != SIM_SEAM_VERSION)
		return;
	atomic_store(&found->switches->deadlocks,
		     tracer_fault_is_on(FAULT_VERSION) &&
			     tracer_fault_value(FAULT_VERSION) < XT_CUPTI_OF_CUDA13_0_1);
	atomic_store(&found->switches->fails_to_grow,
		     found->switches->deadlocks &&
			     tracer_fault_value(FAULT_VERSION) >= XT_CUPTI_OF_CUDA12_9);
	atomic_store(&found->switches->is_cupti13,
		     tracer_fault_is_on(FAULT_VERSION) &&
			     tracer_fault_value(FAULT_VERSION) >= XT_CUPTI_OF_CUDA13);
	atomic_store_explicit(&found->switches->tracer, tracer, memory_order_release);
	atomic_store(&seam, found);
}

struct sim_seam *tracer_seam(void)
{
	return atomic_load_explicit(&seam, memory_order_acquire);
}

int tracer_enter(const char *function)
{
	struct sim_seam *found = tracer_seam();

	if (!found || !found->usable())
		return XT_CUPTI_ERROR_NOT_INITIALIZED;
	return tracer_fault_fails(function) ? XT_CUPTI_ERROR_UNKNOWN : XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiGetVersion(uint32_t *version_out)
{
	if (!version_out)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	*version_out = tracer_fault_is_on(FAULT_VERSION)
			       ? (uint32_t)tracer_fault_value(FAULT_VERSION)
			       : SIM_CUPTI_VERSION;
	return tracer_fault_fails(__func__) ? XT_CUPTI_ERROR_UNKNOWN : XT_CUPTI_SUCCESS;
}

static const struct {
	uint32_t code;
	const char *name;
} results[] = {
#define RESULT(name)                                                                               \
	{                                                                                          \
		XT_##name, #name                                                                   \
	}
	RESULT(CUPTI_SUCCESS),
	RESULT(CUPTI_ERROR_INVALID_PARAMETER),
	RESULT(CUPTI_ERROR_INVALID_DEVICE),
	RESULT(CUPTI_ERROR_INVALID_CONTEXT),
	RESULT(CUPTI_ERROR_INVALID_OPERATION),
	RESULT(CUPTI_ERROR_OUT_OF_MEMORY),
	RESULT(CUPTI_ERROR_HARDWARE),
	RESULT(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT),
	RESULT(CUPTI_ERROR_API_NOT_IMPLEMENTED),
	RESULT(CUPTI_ERROR_MAX_LIMIT_REACHED),
	RESULT(CUPTI_ERROR_NOT_READY),
	RESULT(CUPTI_ERROR_NOT_COMPATIBLE),
	RESULT(CUPTI_ERROR_NOT_INITIALIZED),
	RESULT(CUPTI_ERROR_QUEUE_EMPTY),
	RESULT(CUPTI_ERROR_INVALID_STREAM),
	RESULT(CUPTI_ERROR_INVALID_KIND),
	RESULT(CUPTI_ERROR_DISABLED),
	RESULT(CUPTI_ERROR_NOT_SUPPORTED),
	RESULT(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES),
	RESULT(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED),
	RESULT(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES),
	RESULT(CUPTI_ERROR_UNKNOWN),
#undef RESULT
};

SIM_EXPORT int cuptiGetResultString(uint32_t result, const char **text_out)
{
	if (!text_out)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		if (results[i].code == result) {
			*text_out = results[i].name;
			return XT_CUPTI_SUCCESS;
		}
	}
	*text_out = "<unknown>";
	return XT_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT int cuptiGetErrorMessage(uint32_t result, const char **text_out)
{
	return cuptiGetResultString(result, text_out);
}

static const struct {
	uint32_t cbid;
	const char *name;
} runtime_names[] = {
#define NAME(name, cbid, class) {cbid, #name},
	XT_CUPTI_RUNTIME_LAUNCHES(NAME)
#undef NAME
};

static const struct {
	uint32_t cbid;
	const char *name;
} launch_names[] = {
#define NAME(name, cbid, class) {cbid, #name},
	XT_CUPTI_DRIVER_LAUNCHES(NAME)
#undef NAME
};

static const char *driver_name(uint32_t cbid)
{
	const struct sim_api *api = tracer_seam()->api_by_cbid(cbid);

	if (api)
		return api->name;
	for (size_t i = 0; i < sizeof(launch_names) / sizeof(launch_names[0]); i++)
		if (launch_names[i].cbid == cbid)
			return launch_names[i].name;
	return NULL;
}

static const char *runtime_name(uint32_t cbid)
{
	for (size_t i = 0; i < sizeof(runtime_names) / sizeof(runtime_names[0]); i++)
		if (runtime_names[i].cbid == cbid)
			return runtime_names[i].name;
	return NULL;
}

SIM_EXPORT int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name_out)
{
	int result = tracer_enter(__func__);

	if (result)
		return result;
	if (!name_out)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	*name_out = NULL;
	if (domain == XT_CUPTI_CB_DOMAIN_DRIVER_API)
		*name_out = driver_name(cbid);
	else if (domain == XT_CUPTI_CB_DOMAIN_RUNTIME_API)
		*name_out = runtime_name(cbid);
	return *name_out ? XT_CUPTI_SUCCESS : XT_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT int cuptiGetContextId(void *context, uint32_t *id_out)
{
	int result = tracer_enter(__func__);
	uint32_t device_id;

	if (result)
		return result;
	if (!id_out)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	return tracer_seam()->context_ids(context, id_out, &device_id)
		       ? XT_CUPTI_SUCCESS
		       : XT_CUPTI_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT int cuptiGetDeviceId(void *context, uint32_t *id_out)
{
	int result = tracer_enter(__func__);
	uint32_t context_id;

	if (result)
		return result;
	if (!id_out)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	return tracer_seam()->context_ids(context, &context_id, id_out)
		       ? XT_CUPTI_SUCCESS
		       : XT_CUPTI_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread_stream,
				  uint32_t *id_out)
{
	int result = tracer_enter(__func__);

	if (result)
		return result;
	if (!id_out)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	*id_out = tracer_seam()->stream_id(context, stream, per_thread_stream != 0);
	return *id_out ? XT_CUPTI_SUCCESS : XT_CUPTI_ERROR_INVALID_STREAM;
}

SIM_EXPORT int cuptiGetStreamId(void *context, void *stream, uint32_t *id_out)
{
	return cuptiGetStreamIdEx(context, stream, 0, id_out);
}

#define GET_ID(function, type, member)                                                             \
	SIM_EXPORT int function(void *handle, type *id_out)                                        \
	{                                                                                          \
		int result = tracer_enter(__func__);                                               \
                                                                                                   \
		if (result)                                                                        \
			return result;                                                             \
		if (!id_out)                                                                       \
			return XT_CUPTI_ERROR_INVALID_PARAMETER;                                   \
		*id_out = tracer_seam()->member(handle);                                           \
		return *id_out ? XT_CUPTI_SUCCESS : XT_CUPTI_ERROR_INVALID_PARAMETER;              \
	}
GET_ID(cuptiGetGraphNodeId, uint64_t, graph_node_id)
GET_ID(cuptiGetGraphId, uint32_t, graph_id)
GET_ID(cuptiGetGraphExecId, uint32_t, graph_exec_id)
#undef GET_ID

SIM_EXPORT int cuptiGetLastError(void)
{
	return XT_CUPTI_SUCCESS;
}
