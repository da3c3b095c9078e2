/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from the rings of threads, and from the activity buffers of CUPTI. Writer thread only. */
#ifndef XT_INJECT_RECORD_CALLS_H
#define XT_INJECT_RECORD_CALLS_H

#include "inject/writer/recorder.h"

/*
 * Drains all rings, unless the log cannot be written. Returns the largest share of a ring, in
 * percent, that waits for a flush.
 */
uint32_t record_calls(struct recorder *rec);

/*
 * Ends all open NVTX ranges, because recording stops: their ends will not be recorded. Call it once
 * the rings are drained.
 */
void record_range_ends(struct recorder *rec);

/* Recording starts again: from now on, the ends of ranges that began before are ignored. */
void record_ranges_restart(struct recorder *rec);

/* Turns completed buffers into rows, as long as they can be held. */
void record_activity(struct recorder *rec);

/*
 * Stores the kernel names of unread buffers in the crash buffer, if no buffer was read since the
 * last call.
 */
void prefetch_names(struct recorder *rec);

#endif
