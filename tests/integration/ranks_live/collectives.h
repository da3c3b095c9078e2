/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives like NCCL's: a kernel with NCCL's name in a range of the domain NCCL, whose payload
 * has NCCL's fields. The simulated GPU makes these kernels wait for each other.
 */
#ifndef XTRACE_TESTS_RANKS_LIVE_COLLECTIVES_H
#define XTRACE_TESTS_RANKS_LIVE_COLLECTIVES_H

#include <cuda.h>
#include <stdint.h>

enum operation { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, OPERATIONS };

struct communicator {
	uint64_t id;
	uint32_t rank;
	uint32_t rank_count;
};

extern const char collectives_ptx[];

/* Call it once, before the other functions. The module has the kernels of collectives_ptx. */
void collectives_start(CUmodule module);
void communicator_start(const struct communicator *communicator);
/* bytes: as in NCCL's ranges. root: of BROADCAST and REDUCE. */
CUresult collective(const struct communicator *communicator, enum operation operation,
		    uint64_t bytes, uint32_t root, CUstream stream);

#endif
