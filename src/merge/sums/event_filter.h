/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event filter: decides which events of a log match the user's selection. Call these functions only
 * if reading->run has a selection.
 */
#ifndef XT_MERGE_EVENT_FILTER_H
#define XT_MERGE_EVENT_FILTER_H

#include "merge/sums/aggregate.h"

struct launch;
struct reading;
struct work;

/* Which rows of a log the user's selection includes. */
struct verdicts {
	uint8_t *list; /* by index in the aggregate */
	size_t capacity;
};

struct event_filter {
	uint8_t *ranges; /* by node of the model's ranges */
	size_t range_capacity;
	struct aggregate call_owners; /* owners of calls seen so far; their sums are unused */
	struct verdicts calls;	      /* by index in call_owners */
	struct verdicts work;
};

/* True if the time is within the selected window. */
bool event_filter_wants_time(const struct reading *reading, uint64_t time_ns);

/* True if the call's time, range and path match. */
bool event_filter_wants_call(struct reading *reading, const struct launch *call);

/*
 * True if the time and range of the work and its call match; the path is not checked. Also accepts
 * allocations and frees.
 */
bool event_filter_wants_work(struct reading *reading, const struct work *work,
			     const struct launch *launch);

/* True if the path of the owner at this index of the totals matches. */
bool event_filter_wants_path(struct reading *reading, uint32_t place);

void event_filter_free(struct event_filter *event_filter);

#endif
