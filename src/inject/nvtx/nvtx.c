/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that NVTX calls instead of its own. They run in the program's threads. Ranges and
 * marks keep the hot-path rules. Creating domains and registering strings, which happens once,
 * takes memory from our own store.
 *
 * Ranges may begin before CUDA is initialised; see nvtx_events.c.
 */
#include "inject/nvtx/nvtx.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <wchar.h>

#include "inject/capture/callbacks.h"
#include "inject/cupti/cupti.h"
#include "inject/nvtx/nvtx_schema.h"
#include "xtrace/log_format.h"

/*
 * Names that programs give to devices, contexts, streams and events. NVTX passes CUDA handles,
 * records of GPU work have CUPTI's ids, so this asks for the ids. Programs name an object once, so
 * calls to the loader and the driver are acceptable. An object without an id gets no name.
 */

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
static const struct nvtx_entry nvtx_cudart_entries[] = {
	{XT_NVTX_NAME_CUDA_DEVICE_A, nvtx_name_device_a},
	{XT_NVTX_NAME_CUDA_DEVICE_W, nvtx_name_device_w},
	{XT_NVTX_NAME_CUDA_STREAM_A, nvtx_name_stream_a},
	{XT_NVTX_NAME_CUDA_STREAM_W, nvtx_name_stream_w},
	{XT_NVTX_NAME_CUDA_EVENT_A, nvtx_name_event_a},
	{XT_NVTX_NAME_CUDA_EVENT_W, nvtx_name_event_w},
	{0, NULL},
};

/* Commits the event that these members of struct nvtx_event describe. */
#define COMMIT(...) nvtx_commit(&(struct nvtx_event){__VA_ARGS__}, regs)

/* One function for each entry of NVTX's tables. */
NVTX_FUNCTION(mark_ex)
{
	COMMIT(.operation = XT_RANGE_MARK, .attributes = (const void *)a);
	return 0;
}

NVTX_FUNCTION(mark_a)
{
	COMMIT(.operation = XT_RANGE_MARK, .text = (const char *)a);
	return 0;
}

NVTX_FUNCTION(mark_w)
{
	COMMIT(.operation = XT_RANGE_MARK, .wide_text = (const wchar_t *)a);
	return 0;
}

NVTX_FUNCTION(range_start_ex)
{
	uint64_t key = nvtx_next_key();

	COMMIT(.operation = XT_RANGE_START, .key = key, .attributes = (const void *)a);
	return key;
}

NVTX_FUNCTION(range_start_a)
{
	uint64_t key = nvtx_next_key();

	COMMIT(.operation = XT_RANGE_START, .key = key, .text = (const char *)a);
	return key;
}

NVTX_FUNCTION(range_start_w)
{
	uint64_t key = nvtx_next_key();

	COMMIT(.operation = XT_RANGE_START, .key = key, .wide_text = (const wchar_t *)a);
	return key;
}

NVTX_FUNCTION(range_end)
{
	COMMIT(.operation = XT_RANGE_END, .key = a);
	return 0;
}

NVTX_FUNCTION(range_push_ex)
{
	COMMIT(.operation = XT_RANGE_PUSH, .attributes = (const void *)a);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_push_a)
{
	COMMIT(.operation = XT_RANGE_PUSH, .text = (const char *)a);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_push_w)
{
	COMMIT(.operation = XT_RANGE_PUSH, .wide_text = (const wchar_t *)a);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_pop)
{
	COMMIT(.operation = XT_RANGE_POP);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(name_os_thread_a)
{
	COMMIT(.operation = XT_RANGE_NAME_THREAD, .key = (uint32_t)a, .text = (const char *)b);
	return 0;
}

NVTX_FUNCTION(name_os_thread_w)
{
	COMMIT(.operation = XT_RANGE_NAME_THREAD, .key = (uint32_t)a,
	       .wide_text = (const wchar_t *)b);
	return 0;
}

NVTX_FUNCTION(name_category_a)
{
	COMMIT(.operation = XT_RANGE_NAME_CATEGORY, .key = (uint32_t)a, .text = (const char *)b);
	return 0;
}

NVTX_FUNCTION(name_category_w)
{
	COMMIT(.operation = XT_RANGE_NAME_CATEGORY, .key = (uint32_t)a,
	       .wide_text = (const wchar_t *)b);
	return 0;
}

NVTX_FUNCTION(domain_mark_ex)
{
	COMMIT(.operation = XT_RANGE_MARK, .domain = nvtx_domain_number(a),
	       .attributes = (const void *)b);
	return 0;
}

NVTX_FUNCTION(domain_range_start_ex)
{
	uint64_t key = nvtx_next_key();

	COMMIT(.operation = XT_RANGE_START, .domain = nvtx_domain_number(a), .key = key,
	       .attributes = (const void *)b);
	return key;
}

NVTX_FUNCTION(domain_range_end)
{
	COMMIT(.operation = XT_RANGE_END, .domain = nvtx_domain_number(a), .key = b);
	return 0;
}

NVTX_FUNCTION(domain_range_push_ex)
{
	COMMIT(.operation = XT_RANGE_PUSH, .domain = nvtx_domain_number(a),
	       .attributes = (const void *)b);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(domain_range_pop)
{
	COMMIT(.operation = XT_RANGE_POP, .domain = nvtx_domain_number(a));
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(domain_name_category_a)
{
	COMMIT(.operation = XT_RANGE_NAME_CATEGORY, .domain = nvtx_domain_number(a),
	       .key = (uint32_t)b, .text = (const char *)c);
	return 0;
}

NVTX_FUNCTION(domain_name_category_w)
{
	COMMIT(.operation = XT_RANGE_NAME_CATEGORY, .domain = nvtx_domain_number(a),
	       .key = (uint32_t)b, .wide_text = (const wchar_t *)c);
	return 0;
}

/* The handle of a registered string is the string. */
NVTX_FUNCTION(domain_register_string_a)
{
	return (uintptr_t)nvtx_keep_text((const char *)b);
}

NVTX_FUNCTION(domain_register_string_w)
{
	char text[TEXT_BYTES_MAX];

	nvtx_narrow((const wchar_t *)b, text, sizeof(text));
	return (uintptr_t)nvtx_keep_text(text);
}

NVTX_FUNCTION(domain_create_a)
{
	return nvtx_create_domain((const char *)a);
}

NVTX_FUNCTION(domain_create_w)
{
	char text[TEXT_BYTES_MAX];

	nvtx_narrow((const wchar_t *)a, text, sizeof(text));
	return nvtx_create_domain(text);
}

static const struct nvtx_entry core_entries[] = {
	{XT_NVTX_MARK_EX, nvtx_mark_ex},
	{XT_NVTX_MARK_A, nvtx_mark_a},
	{XT_NVTX_MARK_W, nvtx_mark_w},
	{XT_NVTX_RANGE_START_EX, nvtx_range_start_ex},
	{XT_NVTX_RANGE_START_A, nvtx_range_start_a},
	{XT_NVTX_RANGE_START_W, nvtx_range_start_w},
	{XT_NVTX_RANGE_END, nvtx_range_end},
	{XT_NVTX_RANGE_PUSH_EX, nvtx_range_push_ex},
	{XT_NVTX_RANGE_PUSH_A, nvtx_range_push_a},
	{XT_NVTX_RANGE_PUSH_W, nvtx_range_push_w},
	{XT_NVTX_RANGE_POP, nvtx_range_pop},
	{XT_NVTX_NAME_CATEGORY_A, nvtx_name_category_a},
	{XT_NVTX_NAME_CATEGORY_W, nvtx_name_category_w},
	{XT_NVTX_NAME_OS_THREAD_A, nvtx_name_os_thread_a},
	{XT_NVTX_NAME_OS_THREAD_W, nvtx_name_os_thread_w},
	{0, NULL},
};

static const struct nvtx_entry core2_entries[] = {
	{XT_NVTX_DOMAIN_MARK_EX, nvtx_domain_mark_ex},
	{XT_NVTX_DOMAIN_RANGE_START_EX, nvtx_domain_range_start_ex},
	{XT_NVTX_DOMAIN_RANGE_END, nvtx_domain_range_end},
	{XT_NVTX_DOMAIN_RANGE_PUSH_EX, nvtx_domain_range_push_ex},
	{XT_NVTX_DOMAIN_RANGE_POP, nvtx_domain_range_pop},
	{XT_NVTX_DOMAIN_NAME_CATEGORY_A, nvtx_domain_name_category_a},
	{XT_NVTX_DOMAIN_NAME_CATEGORY_W, nvtx_domain_name_category_w},
	{XT_NVTX_DOMAIN_REGISTER_STRING_A, nvtx_domain_register_string_a},
	{XT_NVTX_DOMAIN_REGISTER_STRING_W, nvtx_domain_register_string_w},
	{XT_NVTX_DOMAIN_CREATE_A, nvtx_domain_create_a},
	{XT_NVTX_DOMAIN_CREATE_W, nvtx_domain_create_w},
	{0, NULL},
};

/* The functions of the payload extension. Their first argument is the domain. */
#define COMMIT_PAYLOADS(event_operation, event_key, data, count)                                   \
	COMMIT(.operation = event_operation, .domain = nvtx_domain_number(a), .key = event_key,    \
	       .payloads = (const struct xt_nvtx_payload *)(data), .payload_count = count)

NVTX_FUNCTION(schema_register)
{
	return nvtx_register_schema(nvtx_domain_number(a), (const struct xt_nvtx_schema *)b);
}

NVTX_FUNCTION(enum_register)
{
	return nvtx_register_enum(nvtx_domain_number(a), (const struct xt_nvtx_enum *)b);
}

NVTX_FUNCTION(mark_payload)
{
	COMMIT_PAYLOADS(XT_RANGE_MARK, 0, b, c);
	return 0;
}

NVTX_FUNCTION(range_push_payload)
{
	COMMIT_PAYLOADS(XT_RANGE_PUSH, 0, b, c);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_pop_payload)
{
	COMMIT_PAYLOADS(XT_RANGE_POP, 0, b, c);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_start_payload)
{
	uint64_t key = nvtx_next_key();

	COMMIT_PAYLOADS(XT_RANGE_START, key, b, c);
	return key;
}

NVTX_FUNCTION(range_end_payload)
{
	COMMIT_PAYLOADS(XT_RANGE_END, b, c, d);
	return 0;
}

static const struct nvtx_entry payload_entries[] = {
	{XT_NVTX_SCHEMA_REGISTER, nvtx_schema_register},
	{XT_NVTX_ENUM_REGISTER, nvtx_enum_register},
	{XT_NVTX_MARK_PAYLOAD, nvtx_mark_payload},
	{XT_NVTX_RANGE_PUSH_PAYLOAD, nvtx_range_push_payload},
	{XT_NVTX_RANGE_POP_PAYLOAD, nvtx_range_pop_payload},
	{XT_NVTX_RANGE_START_PAYLOAD, nvtx_range_start_payload},
	{XT_NVTX_RANGE_END_PAYLOAD, nvtx_range_end_payload},
	{0, NULL},
};

static void fill_table(const struct xt_nvtx_export_callbacks *callbacks, uint32_t module,
		       const struct nvtx_entry *entries)
{
	xt_nvtx_function_table table = NULL;
	unsigned size = 0;

	if (!callbacks->get_module_function_table(module, &table, &size) || !table)
		return;
	for (const struct nvtx_entry *entry = entries; entry->place; entry++)
		if (entry->place < size && table[entry->place])
			*table[entry->place] = entry->function;
}

int nvtx_take_over(xt_nvtx_get_export_table get_export_table)
{
	const struct xt_nvtx_export_callbacks *callbacks =
		get_export_table(XT_NVTX_EXPORT_CALLBACKS);

	if (nvtx_is_abandoned() || !callbacks || callbacks->struct_bytes < sizeof(*callbacks))
		return 0;
	fill_table(callbacks, XT_NVTX_CORE, core_entries);
	fill_table(callbacks, XT_NVTX_CORE2, core2_entries);
	fill_table(callbacks, XT_NVTX_CUDA, nvtx_cuda_entries);
	fill_table(callbacks, XT_NVTX_CUDART, nvtx_cudart_entries);
	return 1;
}

int nvtx_take_over_extension(const struct xt_nvtx_extension *extension)
{
	if (nvtx_is_abandoned() || !extension || extension->struct_bytes < sizeof(*extension) ||
	    extension->module_id != XT_NVTX_PAYLOAD_MODULE ||
	    extension->compat_id >> 8 != XT_NVTX_PAYLOAD_MAJOR || !extension->segment_count)
		return 0;
	for (const struct nvtx_entry *entry = payload_entries; entry->function; entry++)
		if (entry->place < extension->segments[0].slot_count)
			extension->segments[0].slots[entry->place] = (intptr_t)entry->function;
	return 1;
}
