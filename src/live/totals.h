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
#include "live/idle_gaps.h"
#include "xtrace/reader.h"

#define LIVE_COPY_KINDS	   11 /* CUPTI's copy kinds; 0: unknown */
#define LIVE_GPUS	   64
#define LIVE_GPU_UNKNOWN   (LIVE_GPUS - 1) /* the log does not say on which GPU */
#define LIVE_COMMAND_BYTES 64
#define LIVE_ACCOUNTS_MAX  256

struct live_gpu {
	struct live_spans busy; /* while a kernel, copy or memset ran */
	struct live_idle idle;
	uint64_t kernel_count;
	uint64_t memset_count, memset_bytes;
	uint64_t copy_counts[LIVE_COPY_KINDS], copy_bytes[LIVE_COPY_KINDS];
	uint64_t allocated_bytes; /* that were not freed */
};

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

/* What the log says of the ids that its rows have. */
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
uint32_t live_totals_event_kinds(void);

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
