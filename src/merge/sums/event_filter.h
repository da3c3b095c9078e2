/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a log is read on, where the user wants a part of it. To be asked only if reading->run has a
 * selection.
 */
#ifndef XT_MERGE_EVENT_FILTER_H
#define XT_MERGE_EVENT_FILTER_H

#include "merge/reading.h"

/* Is it of the window of time? */
bool event_filter_wants_time(const struct reading *reading, uint64_t time_ns);

/* Is the call wanted: its time, its range, its path? */
bool event_filter_wants_call(struct reading *reading, const struct launch *call);

/* Is the work wanted as far as that is known with its call, and without its path? Allocations are
 * asked for, too. */
bool event_filter_wants_work(struct reading *reading, const struct work *work,
			     const struct launch *launch);

/* Is the path of the owner at that place of the totals wanted? */
bool event_filter_wants_path(struct reading *reading, uint32_t place);

void event_filter_free(struct event_filter *event_filter);

#endif
