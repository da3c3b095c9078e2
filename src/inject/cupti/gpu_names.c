/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/cupti/gpu_names.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define MULTIPROCESSOR_COUNT 16 /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */

static struct gpu_names found;
static atomic_bool is_known;

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
			if (get_attribute && get_attribute(&found.multiprocessors[device],
							   MULTIPROCESSOR_COUNT, device))
				found.multiprocessors[device] = 0;
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
