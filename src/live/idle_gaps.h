/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle time of the GPUs of a running process by cause, with the rules of docs/WEIGHTS.md.
 *
 * The gaps are those between the busy spans of a GPU. A gap counts when everything in it must be in
 * the log. A gap that is still open counts by what its last launching thread did. When it ends, the
 * time that was not counted yet goes to the causes that then turn out to lack it. So no sum ever
 * decreases, and busy and idle time add up to the elapsed time. Gaps in which recording was stopped
 * do not count. Belongs to one thread.
 */
#ifndef XT_LIVE_IDLE_GAPS_H
#define XT_LIVE_IDLE_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "idle/idle.h"
#include "live/calls.h"
#include "live/spans.h"

#define LIVE_SETTLE_NS	     UINT64_C(1000000000) /* before the latest event, all are in the log */
#define LIVE_DELIVERY_NS     UINT64_C(300000000) /* before the clock, all finished work is in the log */
#define LIVE_THREADS_MAX     4096
#define LIVE_CHECKPOINTS_FEW (1u << 15) /* of all threads; with more, try to forget some */

/* The gaps of one GPU. Zeros are a GPU that has not run anything. */
struct live_idle {
	uint64_t ns[IDLE_CLASSES];
	uint64_t begin_ns; /* start of the first work */
	/* The part of the open gap that is in ns already, and its end; 0: none is. */
	uint64_t early_ns[IDLE_CLASSES], early_until_ns;
	size_t decided; /* busy spans whose gap before them is in ns */
};

/* Recording was stopped or started. */
struct live_switch {
	uint64_t time_ns;
	bool is_on;
};

/* State that all GPUs of a process share. Zeros are the start of a log. */
struct live_gaps {
	struct live_calls calls;
	struct thread_timeline *timelines; /* by thread id */
	size_t timeline_capacity;
	size_t checkpoint_count;      /* of all timelines */
	struct live_switch *switches; /* by time */
	size_t switch_count, switch_capacity;
	uint64_t newest_ns; /* end of the latest event */
};

/* Adds a call. Returns 0 or -ENOMEM. */
int live_gaps_add_call(struct live_gaps *gaps, const struct live_call *call,
		       enum thread_state state);

/* Adds a switch. A repeated one is ignored. Returns 0 or -ENOMEM. */
int live_gaps_add_switch(struct live_gaps *gaps, const struct live_switch *change);

/* Fills in the call of work with this correlation id. */
void live_gaps_join(struct live_gaps *gaps, uint64_t correlation, struct live_work *work);

/* Counts the gaps that end before until_ns, or more if `busy` has very many spans. */
void live_idle_settle(struct live_idle *idle, struct live_gaps *gaps, struct live_spans *busy,
		      uint64_t until_ns);

/* After that, counts the gap that is open, up to until_ns. */
void live_idle_extend(struct live_idle *idle, struct live_gaps *gaps, struct live_spans *busy,
		      uint64_t until_ns);

/* The start of the gap that is open, or would be if the GPU stopped; 0: the GPU has not run. */
uint64_t live_idle_open_ns(const struct live_idle *idle, const struct live_spans *busy);

/* Busy time up to where idle time is counted. Together they are the time since begin_ns. */
uint64_t live_idle_busy_ns(const struct live_idle *idle, const struct live_spans *busy);

/* Forgets what threads did before that time. */
void live_gaps_forget(struct live_gaps *gaps, uint64_t before_ns);

void live_gaps_free(struct live_gaps *gaps);

#endif
