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

/* A counter that the tracer keeps about itself. */
struct live_account {
	char name[40];
	uint64_t value;
	bool is_loss; /* of events */
};

/* A small value for each id of the log. Beyond a limit, ids have the value 0. */
struct live_ids {
	uint8_t *values;
	size_t capacity;
};

/* Zeros are the start of a log. */
struct live_totals {
	struct live_gpu *gpus[LIVE_GPUS]; /* NULL: not used */
	uint64_t launch_count;		  /* of kernels and graphs */
	uint64_t error_count;		  /* API calls that failed */
	char command[LIVE_COMMAND_BYTES]; /* script or program; "" until known */
	struct live_account accounts[LIVE_ACCOUNTS_MAX];
	size_t account_count;
	/* Parts of the state between chunks: */
	struct live_ids gpu_of_stream, kind_of_copy, class_of_api;
	struct live_ids state_of_api; /* enum thread_state + 1 */
	struct live_gaps gaps;
	uint64_t memory_ns;	/* the latest allocation or free, or sum of them in the log */
	bool has_memory_before; /* allocated_bytes includes allocations that the log lacks */
	uint64_t clock_ns;	/* when the writer last added its clock */
	struct xt_allocations allocations;
	struct live_span *batch; /* scratch memory */
	uint8_t *batch_gpus;
	size_t batch_capacity, batch_gpu_capacity;
	char program[256], command_line[1024];
	bool is_flight_recorder;
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

/* Value of an account; 0 if the log has none of this name. */
uint64_t live_totals_account(const struct live_totals *totals, const char *name);

/* Lost events. Those of --max-size are separate: the user asked for them. */
uint64_t live_totals_lost(const struct live_totals *totals, bool is_by_size);

void live_totals_free(struct live_totals *totals);

#endif
