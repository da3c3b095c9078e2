/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the owner of calls, work and memory, and adds their cost to the sums. Called by events.c.
 */
#ifndef XT_MERGE_ATTRIBUTE_H
#define XT_MERGE_ATTRIBUTE_H

#include "merge/sums/reading.h"

/*
 * Finds the owner of work as far as possible without its call. Fills it in place: copying a struct
 * that was just written in small pieces is slow.
 */
void owner_without_call(const struct reading *reading, const struct work *work,
			struct owner *owner);

/* Kernels that add_plainly() added, but not yet to the counters of the run. */
struct plain_sums {
	uint64_t count;
	uint64_t gpu_ns;
};

/*
 * Like attribute_work(), for a kernel outside graphs, if reading->plan.sums_plainly. Returns false,
 * without any effect, if the aggregate expected another owner. Then use attribute_work(). The
 * stack needs no check: an entry with a stack shows that the log has it.
 */
static inline bool add_plainly(struct reading *reading, const struct launch *launch, uint32_t shape,
			       uint64_t duration_ns, struct plain_sums *sums)
{
	struct aggregate *aggregate = &reading->aggregate;
	uint32_t next = aggregate->count ? aggregate->entries[aggregate->last].next : 0;
	struct total *total = &aggregate->entries[next];

	if (next >= aggregate->count || !total->is_plain || total->owner.stack != launch->stack ||
	    total->owner.what != shape || total->owner.api != launch->api ||
	    total->owner.range != launch->range || launch->flags >> LAUNCH_RATE_BIT)
		return false;
	aggregate->last = next;
	total->weights[WEIGHT_GPU_TIME] += duration_ns;
	total->weights[WEIGHT_COUNT]++;
	sums->count++;
	sums->gpu_ns += duration_ns;
	return true;
}

void reading_add_plain_sums(struct reading *reading, const struct plain_sums *sums);

/* Adds the time that the CPU waited in a call, for the weight cpu-wait. */
void reading_add_wait(struct reading *reading, const struct launch *call, uint64_t own_ns);

/*
 * Callbacks for a struct work_receiver, whose context is the reading. attribute_work() finds the
 * owner of work and adds it to the aggregate. If there are replays, attribute_work_with_id() is
 * used instead for work that has a correlation id.
 */
void attribute_work(void *context, const struct work *work, const struct launch *launch);
void attribute_work_with_id(void *context, const struct work *work, const struct launch *launch);
void reading_ran(void *context, const struct stretch *stretch);
void reading_memory_changed(void *context, uint32_t pool, uint64_t time_ns, uint64_t live_bytes);

#endif
