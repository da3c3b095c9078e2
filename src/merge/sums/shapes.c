/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch shapes compared with the size of the device.
 */
#include "merge/sums/shapes.h"

#include <stdio.h>
#include <stdlib.h>

#define WARP_THREADS   32
#define FILL_SMALL     0.25
#define FEW_WARPS_FILL 0.5 /* 32 blocks of one warp fit where there is room for 64 warps */

/* Returns a property of a device, -1 if unknown. */
static long device_property(const struct model *model, uint32_t device, const char *name)
{
	const char *text;
	char key[64], *end;
	long value;

	snprintf(key, sizeof(key), "gpu.%u.%s", device, name);
	text = model_meta(model, key);
	value = strtol(text, &end, 10);
	return end != text && value >= 0 && value <= INT32_MAX ? value : -1;
}

/* Returns 0 if unknown. */
static uint32_t recorded_processors(const struct model *model, uint32_t device)
{
	long count = device_property(model, device, "multiprocessors");

	return count > 0 && count < 65536 ? (uint32_t)count : 0;
}

bool shape_knows_processors(const struct model *model, uint32_t device)
{
	return recorded_processors(model, device);
}

uint32_t shape_processors(const struct model *model, uint32_t device)
{
	uint32_t count = recorded_processors(model, device);

	return count ? count : SHAPE_PROCESSORS_LEAST;
}

uint64_t shape_product(const uint32_t sides[3])
{
	uint64_t all = 1;

	for (int i = 0; i < 3; i++)
		if (__builtin_mul_overflow(all, sides[i] ? sides[i] : 1, &all))
			return UINT64_MAX;
	return all;
}

uint64_t shape_share(uint64_t ns, double fill)
{
	double share_ns = (double)ns * fill;

	return share_ns < (double)ns ? (uint64_t)share_ns : ns;
}

double shape_fill(const struct model *model, uint32_t shape, uint32_t stream)
{
	const struct shape *row = &model->shapes.rows[shape < model->shapes.count ? shape : 0];
	const struct stream *on = &model->streams.rows[stream < model->streams.count ? stream : 0];
	double blocks = (double)shape_product(row->grid);
	uint64_t threads = shape_product(row->block);
	double processors = shape_processors(model, on->defined ? on->device : UINT32_MAX);
	uint64_t warps = threads / WARP_THREADS + !!(threads % WARP_THREADS);
	double fill = (double)threads / ((double)warps * WARP_THREADS);

	if (!row->grid[0]) /* unknown */
		return 1;
	if (blocks < processors)
		fill *= blocks / processors;
	return warps == 1 ? fill * FEW_WARPS_FILL : fill;
}

bool shape_is_small(double fill)
{
	return fill <= FILL_SMALL;
}

const char *const occupancy_limit_names[OCCUPANCY_LIMITS] = {
	[OCCUPANCY_WARPS] = "warps",
	[OCCUPANCY_BLOCKS] = "blocks",
	[OCCUPANCY_REGISTERS] = "registers",
	[OCCUPANCY_SHARED_MEMORY] = "shared memory",
};

/* Constants of cuda_occupancy.h (CUDA 13) by the major number of the compute capability. */
#define REGISTERS_UNIT 256 /* a warp gets a multiple of so many registers */
#define MAJOR_MIN      5
#define MAJOR_MAX      12
#define MAJOR_FINE     8 /* from here on, shared memory comes in smaller units */

struct device_limits shape_limits(const struct model *model, uint32_t device)
{
	long major = device_property(model, device, "compute_capability_major");
	long minor = device_property(model, device, "compute_capability_minor");
	long threads = device_property(model, device, "threads_per_multiprocessor");
	long blocks = device_property(model, device, "blocks_per_multiprocessor");
	long registers = device_property(model, device, "registers_per_multiprocessor");
	long shared = device_property(model, device, "shared_bytes_per_multiprocessor");
	long reserved = device_property(model, device, "reserved_shared_bytes_per_block");

	if (major < MAJOR_MIN || major > MAJOR_MAX || minor < 0 || threads < WARP_THREADS ||
	    blocks <= 0 || registers <= 0 || shared <= 0 || reserved < 0)
		return (struct device_limits){0};
	return (struct device_limits){
		.warps = (uint64_t)threads / WARP_THREADS,
		.blocks = (uint64_t)blocks,
		.registers = (uint64_t)registers,
		.shared_bytes = (uint64_t)shared,
		.reserved_bytes = (uint64_t)reserved,
		.shared_unit_bytes = major < MAJOR_FINE ? 256 : 128,
		.partitions = major == 6 && !minor ? 2 : 4,
	};
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* How many blocks of a shape fit, by limit. */
static void count_blocks(const struct device_limits *limits, const struct shape *shape,
			 uint64_t warps, uint64_t blocks[OCCUPANCY_LIMITS])
{
	uint64_t registers = round_up((uint64_t)shape->registers * WARP_THREADS, REGISTERS_UNIT);
	uint64_t shared = round_up(shape->static_shared_bytes + shape->dynamic_shared_bytes +
					   limits->reserved_bytes,
				   limits->shared_unit_bytes);

	blocks[OCCUPANCY_WARPS] = limits->warps / warps;
	blocks[OCCUPANCY_BLOCKS] = limits->blocks;
	blocks[OCCUPANCY_REGISTERS] = registers ? limits->registers / limits->partitions /
							  registers * limits->partitions / warps
						: UINT64_MAX;
	blocks[OCCUPANCY_SHARED_MEMORY] = shared ? limits->shared_bytes / shared : UINT64_MAX;
}

struct occupancy shape_occupancy(const struct device_limits *limits, const struct shape *shape)
{
	uint64_t threads = shape_product(shape->block), blocks[OCCUPANCY_LIMITS];
	uint64_t warps = threads / WARP_THREADS + !!(threads % WARP_THREADS), least = UINT64_MAX;
	struct occupancy occupancy = {.warps_max = (uint32_t)limits->warps};

	/* Impossible values of a damaged log must not overflow. */
	if (!limits->warps || !shape->block[0] || !shape->registers ||
	    shape->static_shared_bytes > UINT32_MAX || shape->dynamic_shared_bytes > UINT32_MAX)
		return (struct occupancy){0};
	count_blocks(limits, shape, warps, blocks);
	for (int l = 0; l < OCCUPANCY_LIMITS; l++)
		least = blocks[l] < least ? blocks[l] : least;
	for (int l = 0; l < OCCUPANCY_LIMITS; l++)
		occupancy.limiters |= blocks[l] == least ? 1u << l : 0;
	occupancy.warps = (uint32_t)(least * warps);
	return occupancy.warps ? occupancy : (struct occupancy){0};
}
