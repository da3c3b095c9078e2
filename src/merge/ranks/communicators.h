/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same collective in the logs of several ranks.
 *
 * A communicator is known by NCCL's number. The n-th collective of one rank is the n-th of all
 * others. If a log begins later than others, its first collective gets a higher number: the one
 * with which operations, sizes and ends agree best.
 */
#ifndef XT_MERGE_COMMUNICATORS_H
#define XT_MERGE_COMMUNICATORS_H

#include "merge/sums/rank_log.h"

struct inputs;

/* A rank of a communicator. */
struct comm_member {
	const struct rank_log *log;
	const struct rank_member *member; /* in the log */
	uint32_t *items;		  /* its collectives in log->list */
	size_t count;
	size_t first;  /* number of items[0] in the communicator */
	uint32_t rank; /* in the communicator; UINT32_MAX: unknown */
	uint32_t host; /* index in the clocks */
};

struct communicator {
	uint64_t key; /* as in struct rank_member */
	bool is_by_order;
	uint32_t rank_count; /* as NCCL states it; 0: unknown */
	struct comm_member *members;
	size_t member_count, member_capacity;
	size_t instance_count;
	struct arrivals *arrivals; /* by number; see arrivals_compare() */
};

/* A log that is of the same rank as an earlier one. */
struct duplicate_rank {
	size_t log, other; /* indexes in the inputs */
	uint32_t rank;
};

/* Zeros are an empty list. */
struct communicators {
	struct communicator *list; /* those with several ranks */
	size_t count, capacity;
	struct duplicate_rank *duplicates; /* left out */
	size_t duplicate_count, duplicate_capacity;
};

/*
 * Finds the communicators of all logs and numbers their collectives. hosts: by log, its host. The
 * logs must outlive the result. Returns 0 or -ENOMEM.
 */
int communicators_find(struct communicators *out, const struct rank_log *logs, size_t log_count,
		       const struct inputs *inputs, const uint32_t *hosts);
void communicators_free(struct communicators *communicators);

/*
 * Returns the number after the last collective that a member entered, whether it finished or not.
 */
size_t comm_member_reach(const struct communicator *communicator, size_t member);

/* Returns the collective of a member with a number; NULL: its log does not have it. */
static inline const struct rank_collective *comm_item(const struct comm_member *member,
						      size_t number)
{
	return number < member->first || number - member->first >= member->count
		       ? NULL
		       : &member->log->list[member->items[number - member->first]];
}

/* Writes "123456", or "stream 0" if collectives are compared by the order on their streams. */
void communicator_name(const struct communicator *communicator, char *out, size_t out_bytes);

#endif
