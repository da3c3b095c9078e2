/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch shapes against devices.
 */
#include "merge/shapes.h"

#include <stdio.h>
#include <stdlib.h>

#define WARP_THREADS   32
#define FILL_SMALL     0.25
#define FEW_WARPS_FILL 0.5 /* 32 blocks of one warp each fit where there is room for 64 warps */

/* 0: not known. */
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

static double product(const uint32_t sides[3])
{
	double all = 1;

	for (int i = 0; i < 3; i++)
		all *= sides[i] ? sides[i] : 1;
	return all;
}

double shape_fill(const struct model *model, uint32_t shape, uint32_t stream)
{
	const struct shape *row = &model->shapes.rows[shape < model->shapes.count ? shape : 0];
	const struct stream *on = &model->streams.rows[stream < model->streams.count ? stream : 0];
	double blocks = product(row->grid), threads = product(row->block);
	double processors = shape_processors(model, on->defined ? on->device : UINT32_MAX);
	uint64_t warps = ((uint64_t)threads + WARP_THREADS - 1) / WARP_THREADS;
	double fill = threads / (double)(warps * WARP_THREADS);

	if (!row->grid[0]) /* not known */
		return 1;
	if (blocks < processors)
		fill *= blocks / processors;
	return warps == 1 ? fill * FEW_WARPS_FILL : fill;
}

bool shape_is_small(double fill)
{
	return fill <= FILL_SMALL;
}
