/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch shapes of kernels: how much of a device they can use, judged by their grid and block size.
 * analysis_kernels has the durations and shapes by kernel.
 */
#ifndef XT_MERGE_KERNELS_H
#define XT_MERGE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/read/model.h"
#include "merge/sums/exporter.h"

#define SHAPE_SHORT_NS 20000 /* below this duration, launch latency matters more than shape */

/* Assumed number of multiprocessors if the log does not say. */
#define SHAPE_PROCESSORS_LEAST 40

/* Number of multiprocessors of a device, or SHAPE_PROCESSORS_LEAST if unknown. */
uint32_t shape_processors(const struct model *model, uint32_t device);

/* The same, or 0 if the log does not say. */
uint32_t shape_recorded_processors(const struct model *model, uint32_t device);

/*
 * The part of the stream's device that the shape can fill, in (0, 1]. It is the product of:
 * - the share of multiprocessors that get a block
 * - the share of active threads in its warps
 * - one half, if the blocks are so small that too few warps fit on a multiprocessor
 */
double shape_fill(const struct model *model, uint32_t shape, uint32_t stream);

/* ns * fill, at most ns. */
uint64_t shape_share(uint64_t ns, double fill);

/* Number of blocks of a grid or threads of a block; UINT64_MAX on overflow. */
uint64_t shape_product(const uint32_t sides[3]);

/* True if the shape leaves most of the device unused. */
bool shape_is_small(double fill);

/*
 * Theoretical occupancy: how many warps of a kernel fit on a multiprocessor at once, by its block
 * size, registers and shared memory. This is the calculation of NVIDIA's cuda_occupancy.h
 * (cudaOccMaxActiveBlocksPerMultiprocessor), at the largest share of shared memory.
 */
enum occupancy_limit {
	OCCUPANCY_WARPS,
	OCCUPANCY_BLOCKS,
	OCCUPANCY_REGISTERS,
	OCCUPANCY_SHARED_MEMORY,
	OCCUPANCY_LIMITS
};

struct occupancy {
	uint32_t warps;	    /* 0: unknown */
	uint32_t warps_max; /* of the multiprocessor */
	uint32_t limiters;  /* bits 1 << enum occupancy_limit: nothing more fits because of these */
};

/* Properties of a device from its log. */
struct device_limits {
	uint64_t warps; /* these four per multiprocessor; warps 0: the log lacks a property */
	uint64_t blocks;
	uint64_t registers;
	uint64_t shared_bytes;
	uint64_t reserved_bytes;    /* shared memory that each block needs in addition */
	uint64_t shared_unit_bytes; /* unit of its allocation */
	uint32_t partitions;	    /* parts of the register file */
};

/* All zeros if unknown. */
struct occupancy shape_occupancy(const struct device_limits *limits, const struct shape *shape);

/*
 * Durations and launch shapes by kernel. Copies and memsets have durations only.
 *
 * Memory grows with the number of kernels and of launch shapes, not with the number of launches.
 */
extern const struct exporter analysis_kernels;

/*
 * Returns the name of the kernel with the longest execution, collectives apart. NULL: there is
 * none, or no output needs durations.
 */
const char *kernels_longest(const struct run *run, uint64_t *ns_out);

#endif
