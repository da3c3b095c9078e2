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

#define LIVE_CALLS	  (1u << 17) /* half a second of launches at full speed */
#define LIVE_NODES_MAX	  65536
#define LIVE_CALL_LOST_NS UINT64_C(60000000000) /* later work is taken to be lost */

struct live_call {
	uint64_t enter_ns, exit_ns;
	uint32_t correlation, thread;
	bool is_launch; /* work is to come */
	bool is_known;
};

/* The creation of a graph node. Such a launch has no work. */
struct live_node {
	uint64_t time_ns;
	uint32_t thread;
};

/* Zeros are no calls. */
struct live_calls {
	struct live_call *rows;	 /* by correlation id; NULL: none yet */
	uint32_t oldest, newest; /* correlation ids: launches before the oldest have their work */
	struct live_node *nodes; /* whose calls were not looked for yet */
	size_t node_count, node_capacity;
	uint32_t node_place; /* correlation id near the call of the last node */
};

/* Further nodes are ignored. Returns 0 or -ENOMEM. */
int live_calls_add_node(struct live_calls *calls, const struct live_node *node);

/* The start of the oldest launch whose work may still come; UINT64_MAX: there is none. */
uint64_t live_calls_waiting_since_ns(struct live_calls *calls, uint64_t now_ns);

#define LIVE_SPANS_MAX (1u << 18)

/* Work at an end of a span. */
struct live_work {
	uint64_t enter_ns;    /* start of its call */
	uint32_t correlation; /* of a call that is not known yet; 0: none */
	uint32_t stream;
	uint16_t thread;
	bool has_call; /* if false, enter_ns and thread are 0 */
	bool is_copy;
};

struct live_span {
	uint64_t start_ns, end_ns;
	struct live_work first, last; /* that starts and that ends the span */
};

/* Zeros are an empty union. */
struct live_spans {
	struct live_span *rows; /* disjoint, ascending */
	size_t count, capacity;
	struct live_span *tail; /* scratch memory */
	size_t tail_capacity;
	uint64_t horizon_ns; /* everything before is decided: later additions do not change it */
	uint64_t covered_ns; /* length of the union */
};

/* Adds spans, and sorts them. Returns 0, or -ENOMEM and adds nothing. */
int live_spans_add(struct live_spans *spans, struct live_span *batch, size_t count);

void live_spans_free(struct live_spans *spans);

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
