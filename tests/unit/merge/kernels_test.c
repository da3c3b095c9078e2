/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theoretical occupancy, compared with NVIDIA's own calculation where its header is installed, and
 * the histogram of durations.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "merge/sums/histogram.h"
#include "merge/sums/kernels.h"

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define HAS_CUDA_OCCUPANCY 1
#endif

/* Compute capability and limits of devices, from the CUDA C++ Programming Guide. */
static const struct gpu {
	uint32_t major, minor;
	struct device_limits limits;
} gpus[] = {
	{6, 0, {64, 32, 65536, 65536, 0, 256, 2}},
	{7, 0, {64, 32, 65536, 98304, 0, 256, 4}},
	{7, 5, {32, 16, 65536, 65536, 0, 256, 4}},
	{8, 0, {64, 32, 65536, 167936, 1024, 128, 4}},
	{8, 6, {48, 16, 65536, 102400, 1024, 128, 4}},
	{8, 9, {48, 24, 65536, 102400, 1024, 128, 4}},
	{9, 0, {64, 32, 65536, 233472, 1024, 128, 4}},
};

#define H100 (&gpus[6].limits)

static struct shape make_shape(uint32_t threads, uint32_t registers, uint64_t shared_bytes)
{
	return (struct shape){.grid = {64, 1, 1},
			      .block = {threads, 1, 1},
			      .registers = registers,
			      .static_shared_bytes = shared_bytes};
}

static void names_what_limits_occupancy(void **state)
{
	static const struct {
		uint32_t threads, registers;
		uint64_t shared_bytes;
		uint32_t warps, limiters;
	} cases[] = {
		{256, 32, 1536, 64, 1 << OCCUPANCY_WARPS | 1 << OCCUPANCY_REGISTERS},
		{128, 128, 0, 16, 1 << OCCUPANCY_REGISTERS},
		{32, 16, 0, 32, 1 << OCCUPANCY_BLOCKS},
		{256, 16, 100000, 16, 1 << OCCUPANCY_SHARED_MEMORY},
		{1024, 16, 0, 64, 1 << OCCUPANCY_WARPS},
		{33, 255, 0, 8, 1 << OCCUPANCY_REGISTERS},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct shape shape =
			make_shape(cases[c].threads, cases[c].registers, cases[c].shared_bytes);
		struct occupancy found = shape_occupancy(H100, &shape);

		assert_int_equal(found.warps, cases[c].warps);
		assert_int_equal(found.warps_max, 64);
		assert_int_equal(found.limiters, cases[c].limiters);
	}
}

static void leaves_unknown_occupancy_empty(void **state)
{
	struct shape shape = make_shape(256, 32, 0), vast = make_shape(256, 32, UINT64_MAX);
	struct shape empty = {0};

	(void)state;
	assert_int_equal(shape_occupancy(&(struct device_limits){0}, &shape).warps, 0);
	assert_int_equal(shape_occupancy(H100, &vast).warps, 0);
	assert_int_equal(shape_occupancy(H100, &empty).warps, 0);
	vast = make_shape(UINT32_MAX, UINT32_MAX, UINT32_MAX);
	assert_int_equal(shape_occupancy(H100, &vast).warps, 0);
}

#if HAS_CUDA_OCCUPANCY
/* Returns what NVIDIA's header says. warps 0: it cannot run. */
static struct occupancy reference(const struct gpu *gpu, const struct shape *shape)
{
	static const unsigned factors[OCCUPANCY_LIMITS] = {
		OCC_LIMIT_WARPS, OCC_LIMIT_BLOCKS, OCC_LIMIT_REGISTERS, OCC_LIMIT_SHARED_MEMORY};
	const struct device_limits *limits = &gpu->limits;
	cudaOccDeviceProp properties = {
		.computeMajor = (int)gpu->major,
		.computeMinor = (int)gpu->minor,
		.maxThreadsPerBlock = 1024,
		.maxThreadsPerMultiprocessor = (int)limits->warps * 32,
		.regsPerBlock = (int)limits->registers,
		.regsPerMultiprocessor = (int)limits->registers,
		.warpSize = 32,
		.sharedMemPerBlock = 49152,
		.sharedMemPerMultiprocessor = limits->shared_bytes,
		.numSms = 100,
		.sharedMemPerBlockOptin = limits->shared_bytes - limits->reserved_bytes,
		.reservedSharedMemPerBlock = limits->reserved_bytes,
	};
	cudaOccFuncAttributes attributes = {
		.maxThreadsPerBlock = 1024,
		.numRegs = (int)shape->registers,
		.sharedSizeBytes = shape->static_shared_bytes,
		.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
		.maxDynamicSharedSizeBytes = limits->shared_bytes,
	};
	cudaOccDeviceState state = {.cacheConfig = CACHE_PREFER_SHARED,
				    .carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED};
	struct occupancy occupancy = {.warps_max = (uint32_t)limits->warps};
	cudaOccResult result = {0};
	cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
		&result, &properties, &attributes, &state, (int)shape->block[0],
		shape->dynamic_shared_bytes);

	if (error == CUDA_OCC_ERROR_UNKNOWN_DEVICE) /* older than CUDA 13 supports */
		return (struct occupancy){.warps = UINT32_MAX};
	assert_int_equal(error, CUDA_OCC_SUCCESS);
	occupancy.warps =
		(uint32_t)result.activeBlocksPerMultiprocessor * ((shape->block[0] + 31) / 32);
	for (int l = 0; l < OCCUPANCY_LIMITS; l++)
		occupancy.limiters |= result.limitingFactors & factors[l] ? 1u << l : 0;
	return occupancy;
}
#endif

static void equals_nvidias_calculation(void **state)
{
	(void)state;
#if HAS_CUDA_OCCUPANCY
	uint64_t seed = 3;
	unsigned compared = 0;

	for (unsigned i = 0; i < 200000; i++) {
		const struct gpu *gpu = &gpus[i % (sizeof(gpus) / sizeof(gpus[0]))];
		struct shape shape;
		struct occupancy wanted, found;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		shape = make_shape(1 + (seed >> 20) % 1024, 1 + (seed >> 32) % 255,
				   (seed >> 40) % 49152 * (seed >> 60 & 1));
		shape.dynamic_shared_bytes = (seed >> 44) % 16384 * (seed >> 61 & 1);
		wanted = reference(gpu, &shape);
		if (!wanted.warps || wanted.warps == UINT32_MAX)
			continue;
		found = shape_occupancy(&gpu->limits, &shape);
		assert_int_equal(found.warps, wanted.warps);
		assert_int_equal(found.limiters, wanted.limiters);
		compared++;
	}
	assert_true(compared > 50000);
#else
	skip();
#endif
}

static void divides_durations_into_bars_of_equal_ratio(void **state)
{
	struct histogram histogram = {0};
	uint64_t bars[HISTOGRAM_BARS_MAX], sum = 0;
	uint32_t count;

	(void)state;
	/* One value in each of 12 ranges from 1000 to 4096000, which is 2^12 times as much. */
	for (int i = 0; i < 12; i++)
		histogram_add(&histogram, 1400ull << i);
	histogram_add(&histogram, 1000);
	histogram_add(&histogram, 4096000);
	count = histogram_bars(&histogram, 1000, 4096000, bars);
	assert_int_equal(count, HISTOGRAM_BARS_MAX);
	for (uint32_t b = 0; b < count; b++)
		assert_int_equal(bars[b], b == 0 || b == 11 ? 2 : 1);
	histogram_free(&histogram);
	/* Equal values have one bar, and extreme ones are counted. */
	histogram_add(&histogram, 0);
	assert_int_equal(histogram_bars(&histogram, 0, 0, bars), 1);
	assert_int_equal(bars[0], 1);
	histogram_add(&histogram, UINT64_MAX);
	count = histogram_bars(&histogram, 0, UINT64_MAX, bars);
	for (uint32_t b = 0; b < count; b++)
		sum += bars[b];
	assert_int_equal(sum, 2);
	assert_int_equal(bars[0], 1);
	assert_int_equal(bars[count - 1], 1);
	histogram_free(&histogram);
}

static void joins_histograms(void **state)
{
	struct histogram one = {0}, two = {0};

	(void)state;
	for (uint64_t value = 1; value <= 100; value++)
		histogram_add(value % 2 ? &one : &two, value * 1000);
	histogram_move(&one, &two);
	assert_in_range(histogram_value(&one, 50, 1000, 100000), 49500, 50500);
	assert_in_range(histogram_value(&one, 100, 1000, 100000), 99000, 100000);
	histogram_free(&one);
	histogram_free(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_what_limits_occupancy),
		cmocka_unit_test(leaves_unknown_occupancy_empty),
		cmocka_unit_test(equals_nvidias_calculation),
		cmocka_unit_test(divides_durations_into_bars_of_equal_ratio),
		cmocka_unit_test(joins_histograms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
