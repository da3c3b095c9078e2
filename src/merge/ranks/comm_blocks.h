/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the collectives of a communicator into blocks. All ranks go on together after a block, so
 * what made a rank late in it began in it.
 */
#ifndef XT_MERGE_COMM_BLOCKS_H
#define XT_MERGE_COMM_BLOCKS_H

#include "merge/ranks/arrivals.h"

struct comm_block {
	uint32_t communicator;
	size_t from, until; /* numbers; the last one held up most ranks */
	double end_ns;	    /* the last arrival at the last one */
	size_t late;	    /* the member that the others waited for */
	double late_ns;	    /* mean cost to the others, in which nothing else ran on their GPU */
	double hidden_ns;   /* upper limit of their mean cost from waits beside other work */
	double apart_ns;    /* sum over its collectives: last arrival less mean of the others */
};

/*
 * Whether a member is compared with others in a block: its log has all of the block, and the time
 * before it.
 */
bool comm_block_compares(const struct comm_block *block, const struct communicator *communicator,
			 size_t member);

/* Zeros are an empty list. */
struct comm_blocks {
	struct comm_block *list; /* by end_ns */
	size_t count, capacity;
};

/*
 * Finds the blocks of all communicators, whose arrivals must be known. absorbed_ns is indexed by
 * log of the inputs and by collective: the part of a wait that costs the rank nothing. Returns 0
 * or -ENOMEM.
 */
void comm_blocks_find(struct comm_blocks *blocks, const struct communicators *communicators,
		      const struct rank_clocks *clocks, float *const *absorbed_ns);
void comm_blocks_free(struct comm_blocks *blocks);

#endif
