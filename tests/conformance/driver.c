/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuda for the suite: opens it by name, fills a table of its functions, and creates a context
 * and two kernels.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance.h"

struct driver driver;

static char probe_path[PATH_MAX + 32];

static const char ptx[] = ".version 7.0\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry " EMPTY_NAME "()\n"
			  "{\n"
			  "	ret;\n"
			  "}\n"
			  ".visible .entry " SPIN_NAME "(.param .u32 cycles)\n"
			  "{\n"
			  "	.reg .pred %more;\n"
			  "	.reg .b32 %wanted;\n"
			  "	.reg .b64 %start, %now, %limit;\n"
			  "	ld.param.u32 %wanted, [cycles];\n"
			  "	cvt.u64.u32 %limit, %wanted;\n"
			  "	mov.u64 %start, %clock64;\n"
			  "again:\n"
			  "	mov.u64 %now, %clock64;\n"
			  "	sub.u64 %now, %now, %start;\n"
			  "	setp.lt.u64 %more, %now, %limit;\n"
			  "	@%more bra again;\n"
			  "	ret;\n"
			  "}\n";

/* The probe is in the folder of the program. */
static int name_probe(void)
{
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length < 0)
		return -1;
	program[length] = '\0';
	snprintf(probe_path, sizeof(probe_path), "%s/conformance_probe.so", dirname(program));
	return setenv("CUDA_INJECTION64_PATH", probe_path, 1);
}

int driver_open(void)
{
	void *library;

	if (name_probe()) {
		puts("the probe's path cannot be had");
		return -1;
	}
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("no driver: %s\n", dlerror());
		return -1;
	}
#define FIND(name)                                                                                 \
	*(void **)&driver.name = dlsym(library, #name);                                            \
	if (!driver.name) {                                                                        \
		puts("the driver lacks " #name);                                                   \
		return -1;                                                                         \
	}
	DRIVER_FUNCTIONS(FIND)
#undef FIND
#define FIND(name) *(void **)&driver.name = dlsym(library, #name);
	NEWER_DRIVER_FUNCTIONS(FIND)
#undef FIND
	return 0;
}

int driver_start(void)
{
	char name[128] = "";
	CUdevice device;

	if (driver.cuInit(0) || driver.cuDeviceGet(&device, 0) ||
	    driver.cuDeviceGetName(name, sizeof(name), device) ||
	    driver.cuDevicePrimaryCtxRetain(&driver.context, device) ||
	    driver.cuCtxSetCurrent(driver.context) ||
	    driver.cuModuleLoadData(&driver.module, ptx) ||
	    driver.cuModuleGetFunction(&driver.empty, driver.module, EMPTY_NAME) ||
	    driver.cuModuleGetFunction(&driver.spin, driver.module, SPIN_NAME)) {
		puts("the device cannot be used");
		return -1;
	}
	printf("device: %s\n", name);
	return 0;
}

CUresult launch_empty(CUstream stream)
{
	return driver.cuLaunchKernel(driver.empty, 2, 3, 1, 32, 2, 1, 0, stream, NULL, NULL);
}

CUresult launch_spin(CUstream stream, unsigned int cycles)
{
	void *params[] = {&cycles};

	return driver.cuLaunchKernel(driver.spin, 64, 1, 1, 1024, 1, 1, 0, stream, params, NULL);
}

int driver_probed(const char *name)
{
	void *probe = dlopen(probe_path, RTLD_NOW | RTLD_NOLOAD);
	const int *value = probe ? dlsym(probe, name) : NULL;

	return value ? *value : -1;
}
