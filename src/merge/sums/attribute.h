/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the owner of calls, work and memory, and adds their cost to the sums. Called by events.c.
 */
#ifndef XT_MERGE_ATTRIBUTE_H
#define XT_MERGE_ATTRIBUTE_H

#include "merge/reading.h"

/*
 * Finds the owner of work as far as possible without its call. Fills it in place: copying a struct
 * that was just written in small pieces is slow.
 */
void owner_without_call(const struct reading *reading, const struct work *work,
			struct owner *owner);

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
