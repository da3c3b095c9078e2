/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live allocations by device, address and owner.
 *
 * Operations are sorted by time. A pool is the memory of one device, or of the host. The share of
 * each owner at the pool's peak needs no snapshot. If an owner has not changed since the peak, it
 * still holds the same amount.
 */
#ifndef XT_MERGE_MEMORY_H
#define XT_MERGE_MEMORY_H

#include "log/base/allocations.h"
#include "merge/read/correlate.h"
#include "merge/read/pauses.h"
#include "merge/read/reorder_buffer.h"
#include "merge/sums/aggregate.h"

#define MEMORY_POOLS_MAX 256 /* the last pool holds unknown devices and those beyond the limit */
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
	uint64_t epoch; /* incremented at each new peak */
};

struct memory_counts {
	uint64_t free_unmatched; /* frees of addresses with no known allocation */
	uint64_t alloc_over;	 /* allocations at an address in use: the free is missing */
	uint64_t late_count;	 /* operations that arrived too late to be sorted */
	uint64_t unowned; /* allocations without a known call or stack; static ones excluded */
};

/* The memory of one process on a device or on the host. */
struct memory_row {
	uint32_t label; /* name in paths */
	struct memory_pool pool;
	int64_t peak_ns; /* since the start of the first log */
};

/* Over all processes. Zeros are empty. */
struct memory_sums {
	LIST(struct memory_row); /* one for each process and used pool */
	struct memory_counts counts;
};

/*
 * Called with the size of a pool after each operation. If an allocation replaces one in another
 * pool, it is called for both.
 */
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
	struct xt_allocations live;
	BY_ID(struct holder) holders; /* by index in the aggregate */
	const struct pauses *stops;   /* sorted by time; after each, no allocation is known */
	size_t stops_passed;
	uint64_t last_ns;    /* of the last operation */
	uint64_t skipped_ns; /* of the last operation that is not in the time window */
};

/* The pool for memory of this kind on this device. */
uint32_t memory_pool(uint32_t device, uint32_t kind);

/* aggregate and stops must outlive the memory. stops: when allocations were not recorded. */
void memory_init(struct memory *memory, struct aggregate *aggregate, const struct pauses *stops,
		 struct memory_listener listener);
void memory_free(struct memory *memory);

/*
 * Adds a WORK_ALLOC or WORK_FREE. graph_node is the address, stream the device and shape the memory
 * kind. This owner applies unless memory_set_owner() is called with the ticket.
 */
void memory_add(struct memory *memory, const struct work *work, const struct owner *owner,
		uint64_t *ticket_out);
void memory_set_owner(struct memory *memory, uint64_t ticket, const struct owner *owner);

/*
 * Complete WEIGHT_PEAK_BYTES and WEIGHT_LEAKED_BYTES. Call it after the last operation. ends_early:
 * the log does not contain all operations until its end, so it is not known what was freed.
 */
void memory_finish(struct memory *memory, bool ends_early);

struct reading;

/* Adds the memory of a log that was read. */
void memory_sums_add(struct memory_sums *all, const struct reading *reading);

#endif
