/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first argument of a kernel that is a collective in the simulation, passed by value. With
 * XTRACE_SIMGPU_RANKS, these are the kernels whose names begin with ncclDevKernel_ or ncclKernel_.
 */
#ifndef XTRACE_SIMGPU_COLLECTIVE_H
#define XTRACE_SIMGPU_COLLECTIVE_H

#include <stdint.h>

struct simgpu_collective {
	uint64_t communicator; /* the same number in all of its ranks */
	uint64_t bytes;	       /* as in NCCL's NVTX ranges: AllGather: sent by each rank */
	uint32_t rank_count;   /* of the communicator, at most 1,024 */
	uint32_t rank;	       /* in the communicator */
	uint32_t root;	       /* of Broadcast and Reduce */
	uint32_t padding;
};

/* That argument in the PTX of a kernel. */
#define SIMGPU_COLLECTIVE_PARAM ".param .align 8 .b8 collective[32]"

#endif
