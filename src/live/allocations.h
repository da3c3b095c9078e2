/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that were not freed yet, by address. Memory is bounded. Belongs to one thread.
 */
#ifndef XT_LIVE_ALLOCATIONS_H
#define XT_LIVE_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_ALLOCATIONS_MAX (1u << 19)

struct live_allocation {
	uint64_t address, bytes, time_ns;
	uint32_t gpu;
	bool is_used;
};

/* Zeros are an empty table. */
struct live_allocations {
	struct live_allocation *slots;
	size_t slot_count, count;
};

/*
 * Adds an allocation. Returns 0, 1 if it replaced *old_out, which was never seen to be freed,
 * -ENOSPC if the table is full, or -ENOMEM.
 */
int live_allocations_add(struct live_allocations *table, const struct live_allocation *allocation,
			 struct live_allocation *old_out);

/* Removes the allocation that was freed at time_ns. False if it is unknown, or newer than that. */
bool live_allocations_remove(struct live_allocations *table, uint64_t address, uint64_t time_ns,
			     struct live_allocation *old_out);

void live_allocations_free(struct live_allocations *table);

#endif
