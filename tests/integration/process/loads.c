/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loads LIBCUDA TIMES: opens the driver, uses it and closes it, several times. It is not linked
 * with the driver, so that the driver can be closed, and so that it starts where the loader ignores
 * variables (setuid).
 */
#include <cuda.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int use(void *driver)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry kernel() { ret; }\n";
#define FIND(name)                                                                                 \
	__typeof__(&(name)) find_##name = (__typeof__(&(name)))dlsym(driver, name_of(name))
#define TEXT(name)    #name
#define name_of(name) TEXT(name)
	FIND(cuInit);
	FIND(cuDeviceGet);
	FIND(cuDevicePrimaryCtxRetain);
	FIND(cuDevicePrimaryCtxRelease);
	FIND(cuCtxSetCurrent);
	FIND(cuModuleLoadData);
	FIND(cuModuleGetFunction);
	FIND(cuLaunchKernel);
	FIND(cuCtxSynchronize);
	CUcontext context = NULL;
	CUfunction function = NULL;
	CUmodule module = NULL;
	CUdevice device = 0;
	int failed = find_cuInit(0) != CUDA_SUCCESS;

	failed += find_cuDeviceGet(&device, 0) != CUDA_SUCCESS;
	failed += find_cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS;
	failed += find_cuCtxSetCurrent(context) != CUDA_SUCCESS;
	failed += find_cuModuleLoadData(&module, ptx) != CUDA_SUCCESS;
	failed += find_cuModuleGetFunction(&function, module, "kernel") != CUDA_SUCCESS;
	for (int i = 0; i < 4; i++)
		failed += find_cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) !=
			  CUDA_SUCCESS;
	failed += find_cuCtxSynchronize() != CUDA_SUCCESS;
	failed += find_cuDevicePrimaryCtxRelease(device) != CUDA_SUCCESS;
	return failed;
}

int main(int argc, char **argv)
{
	for (int i = 0; argc == 3 && i < atoi(argv[2]); i++) {
		void *driver = dlopen(argv[1], RTLD_NOW);
		void *other;

		if (!driver) {
			printf("no driver: %s\n", dlerror());
			return 1;
		}
		printf("%d failures\n", use(driver));
		dlclose(driver);
		other = dlopen("libm.so.6", RTLD_NOW);
		if (other)
			dlclose(other);
	}
	return 5;
}
