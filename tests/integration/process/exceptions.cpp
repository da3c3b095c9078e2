/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ exceptions in a GPU program: caught in the thread that throws, moved to another thread,
 * thrown through frames that launched kernels, and, if requested, not caught.
 */
#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

static CUcontext context;
static CUfunction function;

static void check(CUresult result)
{
	if (result != CUDA_SUCCESS)
		throw std::runtime_error("CUDA error " + std::to_string((int)result));
}

static void begin()
{
	CUmodule module;
	CUdevice device;

	check(cuInit(0));
	check(cuDeviceGet(&device, 0));
	check(cuDevicePrimaryCtxRetain(&context, device));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, ".version 7.0\n.target sm_70\n.address_size 64\n"
					".visible .entry kernel() { ret; }\n"));
	check(cuModuleGetFunction(&function, module, "kernel"));
}

struct unwound {
	~unwound()
	{
		check_quietly();
	}
	/* Launches while an exception propagates. */
	static void check_quietly()
	{
		cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
	}
};

static void descend(int depth)
{
	unwound guard;

	check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	if (!depth)
		check(cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	descend(depth - 1);
}

static void throw_and_catch(int count)
{
	int caught = 0;

	for (int i = 0; i < count; i++) {
		try {
			descend(i % 8);
		} catch (const std::runtime_error &error) {
			caught++;
		}
	}
	std::printf("%d of %d caught\n", caught, count);
}

int main(int argc, char **argv)
{
	std::exception_ptr carried;

	try {
		begin();
	} catch (const std::exception &error) {
		std::printf("%s\n", error.what());
		return 1;
	}
	throw_and_catch(200);
	std::thread other([&carried] {
		cuCtxSetCurrent(context);
		throw_and_catch(50);
		try {
			descend(3);
		} catch (...) {
			carried = std::current_exception();
		}
	});
	other.join();
	try {
		std::rethrow_exception(carried);
	} catch (const std::runtime_error &error) {
		std::printf("carried: %s\n", error.what());
	}
	std::fflush(stdout);
	if (argc > 1 && !std::strcmp(argv[1], "uncaught"))
		descend(2);
	return 0;
}
