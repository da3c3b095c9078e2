/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated devices. All are alike, about as large as a data centre GPU, and have "simulated"
 * in their name.
 */
#include <stdio.h>
#include <string.h>

#include "simgpu/sim.h"

static const struct sim_device_facts device_facts = {
	.name = "xtrace simulated GPU",
	.multiprocessor_count = 132,
	.capability_major = 9,
	.capability_minor = 0,
	.memory_bytes = UINT64_C(80) << 30,
};

static const struct {
	CUdevice_attribute attribute;
	int value;
} attributes[] = {
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
	{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
	{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
	{CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
	{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
	{CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
	{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
	{CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
	{CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
	{CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
	{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
	{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
	{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
	{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
	{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
	{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
	{CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
	{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
	{CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
	{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
	{CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
	{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
	{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
	{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
	{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
	{CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
};

int sim_device_total(void)
{
	return sim_config()->device_count;
}

const struct sim_device_facts *sim_device_facts(int device)
{
	return device >= 0 && device < sim_device_total() ? &device_facts : NULL;
}

CUresult sim_device_get(CUdevice *device, int ordinal)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult sim_device_get_count(int *count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = sim_device_total();
	return CUDA_SUCCESS;
}

CUresult sim_device_get_name(char *name, int length, CUdevice device)
{
	if (!name || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, length, "%s", device_facts.name);
	return CUDA_SUCCESS;
}

CUresult sim_device_get_uuid(CUuuid *uuid, CUdevice device)
{
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memset(uuid->bytes, 0, sizeof(uuid->bytes));
	memcpy(uuid->bytes, "simulated", 9);
	uuid->bytes[15] = (char)device;
	return CUDA_SUCCESS;
}

CUresult sim_device_total_mem(size_t *bytes, CUdevice device)
{
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = device_facts.memory_bytes;
	return CUDA_SUCCESS;
}

CUresult sim_device_get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*value = 0; /* a feature that the table lacks is one that the device lacks */
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
		*value = device + 1;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	return CUDA_SUCCESS;
}

CUresult sim_device_get_pci_bus_id(char *text, int length, CUdevice device)
{
	if (!text || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_facts(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(text, length, "0000:%02X:00.0", device + 1);
	return CUDA_SUCCESS;
}
