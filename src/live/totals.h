/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of a process, added up from the chunks of its log as they are read.
 *
 * Memory is bounded, whatever the length of the log: events are added and forgotten. Only small
 * tables are kept by id. Belongs to one thread.
 */
#ifndef XT_LIVE_TOTALS_H
#define XT_LIVE_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/allocations.h"
#include "idle/idle.h"
#include "xtrace/reader.h"

/*
 * Idle time of the GPUs by cause, with the rules of docs/WEIGHTS.md.
 *
 * The gaps are those between the busy spans of a GPU. A gap counts when everything in it must be in
 * the log. A gap that is still open counts by what its last launching thread did. When it ends, the
 * time that was not counted yet goes to the causes that then turn out to lack it. So no sum ever
 * decreases, and busy and idle time add up to the elapsed time. Gaps in which recording was stopped
 * do not count.
 */
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

#define LIVE_COPY_KINDS	   11 /* CUPTI's copy kinds; 0: unknown */
#define LIVE_GPUS	   64
#define LIVE_GPU_UNKNOWN   (LIVE_GPUS - 1) /* the log does not say on which GPU */
#define LIVE_COMMAND_BYTES 64
#define LIVE_ACCOUNTS_MAX  256

struct live_gpu {
	struct live_spans busy; /* while a kernel, copy or memset ran */
	struct live_idle idle;
	uint64_t kernel_count, memset_count;
	uint64_t copy_counts[LIVE_COPY_KINDS], copy_bytes[LIVE_COPY_KINDS];
	uint64_t allocated_bytes; /* that were not freed */
};

/* Busy time up to where idle time is counted. Together they are the time since begin_ns. */
uint64_t live_busy_ns(const struct live_gpu *gpu);

/* The counters that the tracer keeps about itself. Zeros are none. */
struct live_accounts {
	struct live_account {
		char name[48];
		uint64_t value;
	} rows[LIVE_ACCOUNTS_MAX];
	size_t count;
	bool is_flight_recorder; /* which drops events beyond its size on purpose */
};

/* A small value for each id of the log. Beyond a limit, ids have the value 0. */
struct live_ids {
	uint8_t *values;
	size_t capacity;
};

/* The meaning of the ids in rows, as the log defines them. */
struct live_tables {
	struct live_ids gpu_of_stream, kind_of_copy, class_of_api;
	struct live_ids state_of_api; /* enum thread_state + 1 */
};

struct live_memory {
	struct xt_allocations allocations;
	uint64_t newest_ns; /* the latest allocation or free, or sum of them in the log */
	bool has_before;    /* allocated_bytes includes allocations that the log lacks */
};

/* Scratch memory: the work of a chunk. */
struct live_batch {
	struct live_span *spans;
	uint8_t *gpus;
	size_t span_capacity, gpu_capacity;
};

/* Zeros are the start of a log. */
struct live_totals {
	struct live_gpu *gpus[LIVE_GPUS]; /* NULL: not used */
	uint64_t launch_count;		  /* of kernels and graphs */
	uint64_t error_count;		  /* API calls that failed */
	char command[LIVE_COMMAND_BYTES]; /* script or program; "" until known */
	struct live_accounts accounts;
	/* Parts of the state between chunks: */
	struct live_tables tables;
	struct live_gaps gaps;
	struct live_memory memory;
	struct live_batch batch;
	uint64_t clock_ns; /* when the writer last added its clock */
	char program[256], command_line[1024];
};

/* Kinds of chunks to read. */
uint32_t live_totals_kinds(void);

/* Kinds of chunks whose rows are added up, so that none may be read twice. */
#define LIVE_EVENT_KINDS                                                                           \
	(1u << XT_KIND_CALL | 1u << XT_KIND_KERNEL | 1u << XT_KIND_COPY | 1u << XT_KIND_SET |      \
	 1u << XT_KIND_MEMORY)

/* Adds a chunk. Returns 0 or -ENOMEM. */
int live_totals_add(struct live_totals *totals, const struct xt_chunk *chunk);

/* The log was read to its present end: counts idle time up to shortly before then. */
void live_totals_advance(struct live_totals *totals);

/* The log is complete: counts the rest of the idle time between work. */
void live_totals_finish(struct live_totals *totals);

/* The account of this name, which is added if it is new. NULL: there is no room for it. */
struct live_account *live_account(struct live_accounts *accounts, struct xt_bytes name);

/* Value of an account; 0 if the log has none of this name. */
uint64_t live_account_value(const struct live_accounts *accounts, const char *name);

/*
 * Sum of the accounts that is_loss() chooses. Losses beyond the size of the log are separate: the
 * user asked for them.
 */
uint64_t live_accounts_lost(const struct live_accounts *accounts,
			    bool (*is_loss)(const char *name, size_t length), bool is_by_size);

/* The same for lost events. */
uint64_t live_totals_lost(const struct live_totals *totals, bool is_by_size);

void live_totals_free(struct live_totals *totals);

#endif
