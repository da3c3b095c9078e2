/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that programs give to devices, contexts, streams and events through NVTX. NVTX passes CUDA
 * handles, records of GPU work have CUPTI's ids, so this asks for the ids. Runs in the program's
 * threads, outside of callbacks. Programs name an object once, so calls to the loader and the
 * driver are acceptable. An object without an id gets no name.
 */
#include "inject/nvtx/nvtx_objects.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

#include "inject/capture/callbacks.h"
#include "inject/cupti/cupti.h"
#include "xtrace/log_format.h"

/* Once recording has started, CUPTI and CUDA are initialised. */
static bool is_ready(void)
{
	return atomic_load_explicit(&callbacks_active, memory_order_acquire);
}

static bool context_number(void *context, uint64_t *number)
{
	uint32_t id;

	if (!is_ready() || !cupti.cuptiGetContextId ||
	    cupti.cuptiGetContextId(context, &id) != XT_CUPTI_SUCCESS)
		return false;
	*number = id;
	return true;
}

/* Stream ids are unique within a context. */
static bool stream_numbers(void *stream, uint64_t *number, uint64_t *context)
{
	int (*get_context)(void *, void **) = NULL;
	int saved_errno = errno;
	void *driver, *owner = NULL;
	uint32_t id;

	if (!is_ready() || !cupti.cuptiGetStreamIdEx)
		return false;
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (driver) {
		get_context = (int (*)(void *, void **))dlsym(driver, "cuStreamGetCtx");
		dlclose(driver);
	}
	if (get_context && get_context(stream, &owner))
		owner = NULL;
	errno = saved_errno;
	if (!owner || !context_number(owner, context) ||
	    cupti.cuptiGetStreamIdEx(owner, stream, 0, &id) != XT_CUPTI_SUCCESS)
		return false;
	*number = id;
	return true;
}

static void name_device(uintptr_t device, const char *text, const wchar_t *wide_text,
			const struct caller_regs *regs)
{
	nvtx_note_name(XT_RANGE_NAME_DEVICE, (uint32_t)device, 0, text, wide_text, regs);
}

static void name_context(uintptr_t context, const char *text, const wchar_t *wide_text,
			 const struct caller_regs *regs)
{
	uint64_t number;

	if (context_number((void *)context, &number))
		nvtx_note_name(XT_RANGE_NAME_CONTEXT, number, 0, text, wide_text, regs);
}

static void name_stream(uintptr_t stream, const char *text, const wchar_t *wide_text,
			const struct caller_regs *regs)
{
	uint64_t number, context;

	if (stream_numbers((void *)stream, &number, &context))
		nvtx_note_name(XT_RANGE_NAME_STREAM, number, context, text, wide_text, regs);
}

static void name_event(uintptr_t event, const char *text, const wchar_t *wide_text,
		       const struct caller_regs *regs)
{
	nvtx_note_name(XT_RANGE_NAME_EVENT, event, 0, text, wide_text, regs);
}

/* Handles are pointers, except that a device is an ordinal. */
#define NAMING_FUNCTIONS(object)                                                                   \
	NVTX_FUNCTION(name_##object##_a)                                                           \
	{                                                                                          \
		name_##object(a, (const char *)b, NULL, regs);                                     \
		return 0;                                                                          \
	}                                                                                          \
	NVTX_FUNCTION(name_##object##_w)                                                           \
	{                                                                                          \
		name_##object(a, NULL, (const wchar_t *)b, regs);                                  \
		return 0;                                                                          \
	}
NAMING_FUNCTIONS(device)
NAMING_FUNCTIONS(context)
NAMING_FUNCTIONS(stream)
NAMING_FUNCTIONS(event)

const struct nvtx_entry nvtx_cuda_entries[] = {
	{XT_NVTX_NAME_CU_DEVICE_A, nvtx_name_device_a},
	{XT_NVTX_NAME_CU_DEVICE_W, nvtx_name_device_w},
	{XT_NVTX_NAME_CU_CONTEXT_A, nvtx_name_context_a},
	{XT_NVTX_NAME_CU_CONTEXT_W, nvtx_name_context_w},
	{XT_NVTX_NAME_CU_STREAM_A, nvtx_name_stream_a},
	{XT_NVTX_NAME_CU_STREAM_W, nvtx_name_stream_w},
	{XT_NVTX_NAME_CU_EVENT_A, nvtx_name_event_a},
	{XT_NVTX_NAME_CU_EVENT_W, nvtx_name_event_w},
	{0, NULL},
};

/* The runtime API's streams and events are the driver's. */
const struct nvtx_entry nvtx_cudart_entries[] = {
	{XT_NVTX_NAME_CUDA_DEVICE_A, nvtx_name_device_a},
	{XT_NVTX_NAME_CUDA_DEVICE_W, nvtx_name_device_w},
	{XT_NVTX_NAME_CUDA_STREAM_A, nvtx_name_stream_a},
	{XT_NVTX_NAME_CUDA_STREAM_W, nvtx_name_stream_w},
	{XT_NVTX_NAME_CUDA_EVENT_A, nvtx_name_event_a},
	{XT_NVTX_NAME_CUDA_EVENT_W, nvtx_name_event_w},
	{0, NULL},
};
