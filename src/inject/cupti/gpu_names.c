/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cupti/gpu_names.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

const char *const gpu_limit_names[GPU_LIMITS] = {
	[GPU_MULTIPROCESSORS] = "multiprocessors",
	[GPU_CAPABILITY_MAJOR] = "compute_capability_major",
	[GPU_CAPABILITY_MINOR] = "compute_capability_minor",
	[GPU_THREADS] = "threads_per_multiprocessor",
	[GPU_BLOCKS] = "blocks_per_multiprocessor",
	[GPU_REGISTERS] = "registers_per_multiprocessor",
	[GPU_SHARED_BYTES] = "shared_bytes_per_multiprocessor",
	[GPU_RESERVED_SHARED_BYTES] = "reserved_shared_bytes_per_block",
};

/* CUdevice_attribute. */
static const int attributes[GPU_LIMITS] = {
	[GPU_MULTIPROCESSORS] = 16,  [GPU_CAPABILITY_MAJOR] = 75,
	[GPU_CAPABILITY_MINOR] = 76, [GPU_THREADS] = 39,
	[GPU_BLOCKS] = 106,	     [GPU_REGISTERS] = 82,
	[GPU_SHARED_BYTES] = 81,     [GPU_RESERVED_SHARED_BYTES] = 111,
};

static struct gpu_names found;
static atomic_bool is_known;

static void read_limits(int (*get_attribute)(int *, int, int), int device)
{
	for (int l = 0; l < GPU_LIMITS; l++)
		if (!get_attribute ||
		    get_attribute(&found.limits[device][l], attributes[l], device))
			found.limits[device][l] = -1;
}

/* The driver reports an error until cuInit() is far enough; the caller then asks again. */
void gpu_names_read(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*get_count)(int *);
	int (*get_name)(char *, int, int);
	int (*get_uuid)(void *, int);
	int (*get_attribute)(int *, int, int);
	int count = 0;

	if (!driver)
		return;
	get_count = (int (*)(int *))dlsym(driver, "cuDeviceGetCount");
	get_name = (int (*)(char *, int, int))dlsym(driver, "cuDeviceGetName");
	get_uuid = (int (*)(void *, int))dlsym(driver, "cuDeviceGetUuid_v2");
	get_attribute = (int (*)(int *, int, int))dlsym(driver, "cuDeviceGetAttribute");
	if (get_count && get_name && !get_count(&count)) {
		for (int device = 0; device < count && device < GPUS_MAX; device++) {
			/* A CUdevice is the ordinal of the device. */
			if (get_name(found.names[device], GPU_NAME_BYTES - 1, device))
				break;
			if (get_uuid && get_uuid(found.uuids[device], device))
				memset(found.uuids[device], 0, GPU_UUID_BYTES);
			read_limits(get_attribute, device);
			found.count++;
		}
		atomic_store(&is_known, true);
	}
	dlclose(driver);
}

const struct gpu_names *gpu_names(void)
{
	return atomic_load(&is_known) ? &found : NULL;
}
