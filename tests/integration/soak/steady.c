/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady SECONDS LAUNCHES_A_SECOND LEDGER: launches at a constant rate, in batches of 10 ms. The
 * ledger has a line for each batch: its start and end (CLOCK_MONOTONIC, ns), its number of
 * launches, and the time of its slowest launch (ns).
 */
#include <cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCHES_A_SECOND 100
#define BATCH_NS	 (1000000000 / BATCHES_A_SECOND)

static void check(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, (int)result);
	exit(1);
}
#define CHECK(call) check((call), #call)

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static CUfunction begin(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry kernel() { ret; }\n";
	CUfunction function;
	CUcontext context;
	CUmodule module;
	CUdevice device;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&function, module, "kernel"));
	return function;
}

static void launch_batch(CUfunction function, unsigned count, FILE *ledger)
{
	uint64_t begin_ns = now_ns(), last_ns = begin_ns, slowest_ns = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t end_ns;

		CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
		end_ns = now_ns();
		if (end_ns - last_ns > slowest_ns)
			slowest_ns = end_ns - last_ns;
		last_ns = end_ns;
	}
	fprintf(ledger, "%llu %llu %u %llu\n", (unsigned long long)begin_ns,
		(unsigned long long)last_ns, count, (unsigned long long)slowest_ns);
}

static void sleep_until(uint64_t time_ns)
{
	const struct timespec time = {(time_t)(time_ns / 1000000000), (long)(time_ns % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

int main(int argc, char **argv)
{
	unsigned long seconds = argc > 3 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned count = argc > 3 ? (unsigned)strtoul(argv[2], NULL, 10) / BATCHES_A_SECOND : 0;
	FILE *ledger = argc > 3 ? fopen(argv[3], "w") : NULL;
	uint64_t start_ns;
	CUfunction function;

	if (!seconds || !count || !ledger) {
		fprintf(stderr, "usage: steady SECONDS LAUNCHES_A_SECOND LEDGER\n");
		return 2;
	}
	function = begin();
	start_ns = now_ns();
	for (unsigned long batch = 0; batch < seconds * BATCHES_A_SECOND; batch++) {
		launch_batch(function, count, ledger);
		if (batch % BATCHES_A_SECOND == 0)
			fflush(ledger);
		sleep_until(start_ns + (batch + 1) * BATCH_NS);
	}
	CHECK(cuCtxSynchronize());
	return fclose(ledger) ? 1 : 0;
}
