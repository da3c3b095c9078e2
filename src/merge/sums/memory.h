/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that live: by device, by address, and by who asked for them.
 *
 * Operations are brought into the order of their times. A pool is the memory of a device, or that
 * of the host. What each owner held when its pool was at its peak is known without copying: an owner
 * that has not changed since the peak holds now what it held then.
 */
#ifndef XT_MERGE_MEMORY_H
#define XT_MERGE_MEMORY_H

#include "merge/read/correlate.h"
#include "merge/read/reorder_buffer.h"
#include "merge/sums/aggregate.h"

#define MEMORY_POOLS_MAX 256 /* the last is all devices beyond, and unknown ones */
#define MEMORY_POOL_HOST (MEMORY_POOLS_MAX - 2)

/* owner.what of LEAF_MEMORY: CUPTI's memory kind and the pool. */
#define MEMORY_WHAT(kind, pool) ((uint32_t)(pool) << 8 | (kind))
#define MEMORY_WHAT_KIND(what)	((what)&0xff)
#define MEMORY_WHAT_POOL(what)	((what) >> 8)

struct memory_pool {
	uint64_t alloc_count;
	uint64_t alloc_bytes;
	uint64_t free_count;
	uint64_t live_bytes;
	uint64_t peak_bytes;
	uint64_t peak_ns;
	uint64_t epoch; /* goes on at each new peak */
};

struct memory_counts {
	uint64_t free_unmatched; /* of what was not allocated, as far as the log knows */
	uint64_t alloc_over;	 /* at an address that was in use: its free is missing */
	uint64_t late_count;	 /* too late to be brought into order */
	uint64_t unowned; /* allocations whose call, or its stack, is not known; static aside */
};

/* Told of what a pool holds after each operation; an allocation over one in another pool is two. */
struct memory_listener {
	void (*changed)(void *context, uint32_t pool, uint64_t time_ns, uint64_t live_bytes);
	void *context;
};

struct memory {
	struct aggregate *aggregate;
	struct memory_listener listener;
	struct reorder_buffer reorder;
	struct memory_pool pools[MEMORY_POOLS_MAX];
	struct memory_counts counts;
	struct allocation *live; /* by hash of the address */
	uint32_t live_size;
	uint32_t live_count;
	struct holder *holders; /* by place in totals */
	size_t holder_capacity;
	int error;
};

/* The pool of memory of that kind on that device. */
uint32_t memory_pool(uint32_t device, uint32_t kind);

/* totals must outlive the memory. */
void memory_init(struct memory *memory, struct aggregate *aggregate,
		 struct memory_listener listener);
void memory_free(struct memory *memory);

/*
 * Takes a WORK_ALLOC or WORK_FREE (graph_node is the address, stream the device, shape the kind).
 * owner is who allocated as long as nothing else is said; *ticket_out is for memory_set_owner().
 */
void memory_add(struct memory *memory, const struct work *work, const struct owner *owner,
		uint64_t *ticket_out);
void memory_set_owner(struct memory *memory, uint64_t ticket, const struct owner *owner);

/* No more will come: WEIGHT_PEAK_BYTES and WEIGHT_LEAKED_BYTES of the totals are complete. */
void memory_finish(struct memory *memory);

#endif
