/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of one communicator with the same operation and size, and how fast they transfer.
 */
#ifndef XT_MERGE_COLLECTIVE_GROUPS_H
#define XT_MERGE_COLLECTIVE_GROUPS_H

#include "log/base/hash_table.h"
#include "merge/ranks/arrivals.h"

struct transfer_time {
	double ns, exposed_ns; /* as in struct arrivals */
};

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
	struct xt_hash_table table;
};

/* Adds a collective. */
void collective_groups_add(struct collective_groups *groups, size_t communicator, size_t rank_count,
			   const struct arrivals *arrivals);

/* Computes the medians, and what is slow. */
void collective_groups_finish(struct collective_groups *groups);
void collective_groups_free(struct collective_groups *groups);

#endif
