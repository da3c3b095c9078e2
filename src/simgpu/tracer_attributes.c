/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activity attributes. Each is stored and returned in its own width. Four of them have
 * an effect.
 */
#include <stdatomic.h>
#include <string.h>

#include "simgpu/tracer.h"

static struct {
	size_t value_bytes;
	_Atomic uint64_t value;
} attributes[] = {
	[XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE] = {sizeof(size_t), 3200000},
	[XT_CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT] = {sizeof(size_t), 250},
	[XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER] = {sizeof(uint8_t), 0},
	[XT_CUPTI_ATTR_DEVICE_BUFFER_PRE_ALLOCATE] = {sizeof(size_t), 3},
	[XT_CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED] = {sizeof(uint8_t), 0},
	[XT_CUPTI_ATTR_PER_THREAD_ACTIVITY_BUFFER] = {sizeof(uint8_t), 1},
	[XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS] = {sizeof(size_t),
							    SIM_DEVICE_GRAPHS_BYTES},
};

bool tracer_client_zeroes(void)
{
	return atomic_load(&attributes[XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER].value) != 0;
}

bool tracer_buffers_are_shared(void)
{
	return !atomic_load_explicit(&attributes[XT_CUPTI_ATTR_PER_THREAD_ACTIVITY_BUFFER].value,
				     memory_order_relaxed);
}

static int check(uint32_t attribute, const size_t *value_bytes, const void *value)
{
	if (!value_bytes || !value || attribute >= sizeof(attributes) / sizeof(attributes[0]) ||
	    !attributes[attribute].value_bytes)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	if (*value_bytes < attributes[attribute].value_bytes)
		return XT_CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
	return XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityGetAttribute(uint32_t attribute, size_t *value_bytes, void *value_out)
{
	int result = tracer_enter(__func__);
	uint64_t value;

	if (!result)
		result = check(attribute, value_bytes, value_out);
	if (result)
		return result;
	value = atomic_load(&attributes[attribute].value);
	*value_bytes = attributes[attribute].value_bytes;
	memcpy(value_out, &value, *value_bytes); /* little endian: the low bytes come first */
	return XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivitySetAttribute(uint32_t attribute, size_t *value_bytes, void *value)
{
	int result = tracer_enter(__func__);
	uint64_t widened = 0;

	if (!result)
		result = check(attribute, value_bytes, value);
	if (result)
		return result;
	memcpy(&widened, value, attributes[attribute].value_bytes);
	atomic_store(&attributes[attribute].value, widened);
	if (attribute == XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS)
		atomic_store(&tracer_seam()->switches->device_graphs_bytes, widened);
	if (attribute == XT_CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED)
		atomic_store(&tracer_seam()->switches->has_host_records, widened != 0);
	return XT_CUPTI_SUCCESS;
}
