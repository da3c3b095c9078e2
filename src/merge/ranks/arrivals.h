/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the ranks came to a collective, and how long each waited there.
 */
#ifndef XT_MERGE_ARRIVALS_H
#define XT_MERGE_ARRIVALS_H

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

#endif
