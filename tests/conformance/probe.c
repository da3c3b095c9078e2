/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library that the driver loads through CUDA_INJECTION64_PATH. It counts its loads, and asks
 * for the number of devices in another thread meanwhile.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjection(void);
EXPORT int probe_injection_count;
EXPORT int probe_device_result = -1; /* of cuDeviceGetCount() during cuInit() */

static void *count_devices(void *unused)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*get_count)(int *) = NULL, count;

	if (driver)
		*(void **)&get_count = dlsym(driver, "cuDeviceGetCount");
	if (get_count)
		probe_device_result = get_count(&count);
	return unused;
}

EXPORT int InitializeInjection(void)
{
	pthread_t thread;

	probe_injection_count++;
	if (!pthread_create(&thread, NULL, count_devices, NULL))
		pthread_join(thread, NULL);
	return 1;
}
