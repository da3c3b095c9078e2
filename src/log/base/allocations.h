/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that were not freed yet, by address. Belongs to one thread.
 */
#ifndef XT_LOG_ALLOCATIONS_H
#define XT_LOG_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XT_ALLOCATIONS_MAX (1u << 19) /* unless is_unbounded */

struct xt_allocation {
	uint64_t address, bytes, time_ns;
	uint32_t gpu;
	uint32_t holder; /* the caller's */
	bool is_used;
};

/* CUPTI's kinds of memory that belong to the host. */
#define XT_MEMORY_PAGEABLE 1
#define XT_MEMORY_PINNED   2

static inline bool xt_memory_is_on_gpu(uint64_t kind)
{
	return kind != XT_MEMORY_PAGEABLE && kind != XT_MEMORY_PINNED;
}

/* Zeros are an empty table. */
struct xt_allocations {
	struct xt_allocation *slots;
	size_t slot_count, count;
	bool is_unbounded;
};

/*
 * Adds an allocation. Returns 0, 1 if it replaced *old_out, which was never seen to be freed,
 * -ENOSPC if the table is full, or -ENOMEM.
 */
int xt_allocations_add(struct xt_allocations *table, const struct xt_allocation *allocation,
		       struct xt_allocation *old_out);

/* Removes the allocation that was freed at time_ns. False if it is unknown, or newer than that. */
bool xt_allocations_remove(struct xt_allocations *table, uint64_t address, uint64_t time_ns,
			   struct xt_allocation *old_out);

void xt_allocations_free(struct xt_allocations *table);

#endif
