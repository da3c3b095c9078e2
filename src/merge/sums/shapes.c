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

/* Returns 0 if unknown. */
static uint32_t recorded_processors(const struct model *model, uint32_t device)
{
	char key[40];
	long count;

	snprintf(key, sizeof(key), "gpu.%u.multiprocessors", device);
	count = strtol(model_meta(model, key), NULL, 10);
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
