/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a device a kernel can make use of, as far as its grid and block tell.
 */
#ifndef XT_MERGE_SHAPES_H
#define XT_MERGE_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/read/model.h"

#define SHAPE_SHORT_NS 20000 /* of kernels shorter than that the launch counts, not the shape */

/* Where the log does not say how many multiprocessors there are. */
#define SHAPE_PROCESSORS_LEAST 40

/* The multiprocessors of a device, SHAPE_PROCESSORS_LEAST if not known. */
uint32_t shape_processors(const struct model *model, uint32_t device);

/* Does the log say how many? */
bool shape_knows_processors(const struct model *model, uint32_t device);

/*
 * The part of the device of that stream which the shape can fill, in (0, 1]: the multiprocessors that
 * get a block, the lanes of their warps that have a thread, and half of it if blocks are so small
 * that the blocks that fit on a multiprocessor have too few warps.
 */
double shape_fill(const struct model *model, uint32_t shape, uint32_t stream);

/* As much of ns as fill says. */
uint64_t shape_share(uint64_t ns, double fill);

/* Blocks of a grid, or threads of a block; UINT64_MAX: more than there is room for. */
uint64_t shape_product(const uint32_t sides[3]);

/* Does it leave most of the device unused? */
bool shape_is_small(double fill);

#endif
