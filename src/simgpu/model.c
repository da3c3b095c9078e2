/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations of simulated work. They depend on the seed, the kernel's name, its grid and block, and
 * the number of launches on its stream. The same program with the same seed gets the same
 * durations.
 */
#include <string.h>

#include "simgpu/sim.h"

#define KERNEL_FLOOR_NS		   1500 /* an empty kernel */
#define KERNEL_WAVE_NS		   2000 /* one wave of threads of the cheapest kernel */
#define KERNEL_CEILING_NS	   20000000
#define RESIDENT_THREADS	   (132 * 2048)
#define HOST_COPY_BYTES_PER_US	   25000
#define PAGEABLE_COPY_BYTES_PER_US 6000 /* memory that is not pinned */
#define DEVICE_COPY_BYTES_PER_US   1500000

static uint64_t mix(uint64_t value)
{
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	return value ^ value >> 32;
}

uint64_t sim_hash(const void *data, size_t bytes, uint64_t seed)
{
	const unsigned char *p = data;
	uint64_t hash = mix(seed + bytes);

	while (bytes--)
		hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
	return mix(hash);
}

uint64_t sim_kernel_duration_ns(const struct sim_shape *shape, uint64_t index)
{
	const struct sim_config *config = sim_config();
	uint64_t kernel = mix(shape->function->name_hash ^ config->seed);
	uint64_t threads = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2] *
			   shape->block[0] * shape->block[1] * shape->block[2];
	uint64_t draw = mix(kernel ^ mix(threads + (shape->block[0] ^ index << 20)));
	uint64_t cost;
	uint64_t duration_ns;

	if (config->kernel_max_ns)
		return config->kernel_min_ns +
		       draw % (config->kernel_max_ns - config->kernel_min_ns + 1);
	cost = KERNEL_WAVE_NS * (1 + kernel % 8);
	duration_ns = KERNEL_FLOOR_NS + cost / 4;
	if (threads < (uint64_t)KERNEL_CEILING_NS * RESIDENT_THREADS / cost)
		duration_ns += cost * threads / RESIDENT_THREADS;
	else
		duration_ns = KERNEL_CEILING_NS;
	return duration_ns + duration_ns * (draw % 64) / 512; /* up to an eighth longer */
}

uint64_t sim_copy_duration_ns(uint64_t bytes, uint8_t copy_kind, bool is_pageable)
{
	uint64_t bytes_per_us = copy_kind == XT_CUPTI_COPY_DTOD ? DEVICE_COPY_BYTES_PER_US
				: is_pageable			? PAGEABLE_COPY_BYTES_PER_US
								: HOST_COPY_BYTES_PER_US;

	return 800 + bytes * 1000 / bytes_per_us;
}

uint64_t sim_set_duration_ns(uint64_t bytes)
{
	return 700 + bytes * 1000 / DEVICE_COPY_BYTES_PER_US;
}
