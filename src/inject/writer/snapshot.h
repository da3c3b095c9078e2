/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: copies of the log in `snapshots/` beside it, each complete, while recording continues.
 * A user requests one, or a trigger fires: something unusual happened. Writer thread only, except
 * snapshot_begin() and snapshot_triggers_begin().
 */
#ifndef XT_INJECT_SNAPSHOT_H
#define XT_INJECT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/capture/thread_buffer.h"
#include "inject/writer/recorder.h"
#include "log/base/hash_table.h"
#include "log/base/number_format.h"

/* Limits of automatic snapshots. Beyond them, triggers are only counted. */
struct snapshot_limits {
	uint64_t interval_ns;
	uint32_t count_max;
};

/* Once, before the writer thread starts. */
void snapshot_begin(const struct snapshot_limits *limits);

/* Starts a snapshot at the request of a user. False while another is in progress. */
bool snapshot_request(void);

/* Whether that snapshot has ended. */
bool snapshot_request_is_done(void);

bool snapshot_is_busy(void);

/*
 * Returns the end of the seconds that the log must keep: the request of the snapshot in progress,
 * or now.
 */
uint64_t snapshot_wants_from_ns(void);

/* In each round, after the rings were drained. */
void snapshot_update(struct recorder *rec);

/* Deletes an unfinished snapshot. The process ends, and its log has the same events. */
void snapshot_end(struct recorder *rec);

#define TYPICAL_TIMES	  64 /* the median is of so many */
#define TYPICAL_TIMES_MIN 16 /* fewer have no median yet */

/* Zeros are no times. */
struct typical_time {
	uint64_t latest_ns[TYPICAL_TIMES]; /* the oldest is replaced next */
	uint64_t sorted_ns[TYPICAL_TIMES];
	uint32_t count, oldest;
};

/* The median of the earlier times; 0 while there are fewer than TYPICAL_TIMES_MIN. */
uint64_t typical_time_median_ns(const struct typical_time *typical);

/* Adds a time, and forgets the oldest one. */
void typical_time_add(struct typical_time *typical, uint64_t time_ns);

#define PERIOD_LAUNCHES_MAX (1u << 16) /* iterations may have an eighth of that */

/* A call path in a thread. */
struct launch_place {
	uint32_t thread_id, stack_id;
};

/* Zeros are a program that has not launched anything. */
struct launch_period {
	struct launch_place marker; /* stack_id 0: not known yet */
	uint64_t passed_ns;	    /* when the marker was passed; 0: not yet */
	uint32_t launches_since;    /* of all threads, since then */
	bool has_failed;	    /* out of memory */
	/* Launches so far, while the marker is not known. */
	uint32_t *launches; /* indices of places */
	uint32_t launch_count, next_search;
	size_t launch_capacity;
	struct launch_place *places;
	uint32_t place_count;
	size_t place_capacity;
	struct xt_hash_table table; /* of places */
};

/*
 * Adds a launch. Returns the start of the iteration that ends with it, or 0. *is_new: the marker is
 * not known yet, so earlier iterations were others.
 */
uint64_t launch_period_add(struct launch_period *period, struct launch_place place,
			   uint64_t time_ns, bool *is_new);

/* Keeps pointers to the texts of the triggers. Once, before the writer thread starts. */
void snapshot_triggers_begin(const struct xt_snapshot_trigger *triggers, uint32_t count);

/* A call ended. */
void snapshot_triggers_call(struct recorder *rec, struct thread_buffer *tb,
			    const struct xt_record_call *record);

/* A kernel or a graph was launched. stack_id: XT_STACK_ID or 0. */
void snapshot_triggers_launch(struct recorder *rec, uint32_t thread_id, uint32_t stack_id,
			      uint64_t time_ns);

/* The triggers of ranges with this name: bit i is trigger i. */
uint32_t snapshot_triggers_of_range(const void *name, size_t name_bytes);

/* A range with these triggers ended. */
void snapshot_triggers_range_end(struct recorder *rec, uint32_t triggers, uint64_t duration_ns);

/* In each round: hangs of the GPU, and allocations that were not retried. */
void snapshot_triggers_update(struct recorder *rec);

#endif
