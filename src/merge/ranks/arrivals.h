/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the ranks came to a collective, how long each waited there, and what follows from that:
 * blocks of collectives and the speed of transfers.
 */
#ifndef XT_MERGE_ARRIVALS_H
#define XT_MERGE_ARRIVALS_H

#include "log/base/hash_table.h"
#include "merge/ranks/communicators.h"

/* One collective of a communicator. Times are on the clock of its hosts' reference. */
struct arrivals {
	uint8_t operation;
	uint64_t bytes;
	size_t present_count; /* ranks whose log has it */
	bool is_different;    /* the ranks differ in operation or size */
	bool has_waits;	      /* the fields below are known */
	size_t late;	/* member that others waited for: the last, or the root of a broadcast */
	double last_ns; /* when it came */
	size_t waiting; /* the only member that waits, the root of a reduction; SIZE_MAX: all */
	double mean_ns; /* mean arrival of the others */
	double wait_ns, exposed_ns; /* of all members; see arrivals_wait_ns() */
	double transfer_ns;	    /* from the last arrival to the first end */
	double exposed_transfer_ns; /* the part after all other work, on average over the members */
	bool has_transfer;	    /* both are known */
};

/* Fills in communicator->arrivals of all communicators. */
void arrivals_compare(struct communicators *communicators, const struct rank_clocks *clocks);

/*
 * Returns how long a member waited for the last, 0 if its log lacks the collective. *exposed_ns_out
 * is the part after all other work of its GPU.
 */
double arrivals_wait_ns(const struct communicator *communicator, size_t member, size_t number,
			const struct rank_clocks *clocks, double *exposed_ns_out);

struct communicator_sums {
	uint64_t counts[COLLECTIVE_OPERATIONS]; /* calls of the rank that has most of them */
	uint64_t wait_ns;			/* of all members */
};

struct communicator_sums communicator_sums(const struct communicator *communicator);

/*
 * A part of the collectives of a communicator. All ranks go on together after a block, so what made
 * a rank late in it began in it.
 */
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
 * log of the inputs and by collective: the part of a wait that costs the rank nothing.
 */
void comm_blocks_find(struct comm_blocks *blocks, const struct communicators *communicators,
		      const struct rank_clocks *clocks, float *const *absorbed_ns);
void comm_blocks_free(struct comm_blocks *blocks);

struct transfer_time {
	double ns, exposed_ns; /* as in struct arrivals */
};

/* Collectives of one communicator with the same operation and size. */
struct collective_group {
	size_t communicator; /* index in communicators */
	size_t rank_count;   /* members of the communicator */
	uint64_t bytes;
	uint64_t count;
	uint64_t wait_ns;     /* of all ranks */
	uint64_t transfer_ns; /* median */
	uint64_t slow_ns;     /* exposed time beyond what comparable transfers take, in all */
	struct transfer_time *transfers;
	size_t transfer_count, transfer_capacity;
	uint8_t operation;
};

/* Zeros are an empty list. */
struct collective_groups {
	struct collective_group *list;
	size_t count, capacity;
	struct interner ids; /* of communicator, bytes and operation */
};

/* Adds a collective. */
void collective_groups_add(struct collective_groups *groups, size_t communicator, size_t rank_count,
			   const struct arrivals *arrivals);

/* Computes the medians, and what is slow. */
void collective_groups_finish(struct collective_groups *groups);
void collective_groups_free(struct collective_groups *groups);

#endif
