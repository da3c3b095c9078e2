/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of the events of one log, or of all logs of a run.
 */
#ifndef XT_MERGE_LOG_COUNTS_H
#define XT_MERGE_LOG_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "merge/read/correlate.h"

struct call_counts {
	uint64_t launch_count;
	uint64_t launch_failed_count;	  /* of these: calls that returned an error */
	uint64_t launch_captured_count;	  /* of these: captured into a graph */
	uint64_t launch_kernelless_count; /* of these: launches of graphs without kernels */
	uint64_t launch_unmatched_count;  /* of these: work was expected, none is known */
	uint64_t launch_unclear_count;	  /* no kernel: captured or lost */
	uint64_t kernel_missing_count;	  /* launched, but without a record */
	uint64_t transfer_call_count;	  /* copy and memset calls */
	uint64_t transfer_unmatched_count;
	uint64_t calls_invalid_count;
	uint64_t calls_recurring_count;
	uint64_t memory_untimed_count; /* allocations and frees */
};

struct work_counts {
	uint64_t work_count[WORK_KINDS];
	uint64_t work_invalid_count; /* work left out: invalid times */
	uint64_t work_without_call_count;
	uint64_t work_by_device_count; /* work left out: launched by the GPU for an unknown call */
	uint64_t work_without_stack_count; /* the call is known, its stack is not */
	uint64_t graph_work_count;
	uint64_t graph_work_unmade_count; /* of these: the creator of the node is unknown */
	uint64_t nodes_cyclic_count;
	/* CUDA graphs recorded as a whole; they count as kernels, too */
	uint64_t whole_graph_count, whole_graph_ns;
	uint64_t untimed_count;		/* WEIGHT_UNTIMED of all paths */
	uint64_t timeline_missed_count; /* came too late for weights that need time order */
	uint64_t idle_unknown_ns;	/* gaps in which missing work may have run */
	uint64_t attributed_gpu_ns;
	uint64_t gpu_ns;
};

/* Nothing but counters, so that those of a log can be added to those of the run as an array. */
struct log_counts {
	struct call_counts calls;
	struct work_counts work;
};

static inline void log_counts_add(struct log_counts *sum, const struct log_counts *counts)
{
	const uint64_t *from = (const uint64_t *)counts;
	uint64_t *to = (uint64_t *)sum;

	for (size_t c = 0; c < sizeof(*counts) / sizeof(*from); c++)
		to[c] += from[c];
}

/* Kernels, copies and memsets together. */
static inline uint64_t work_counts_all(const struct work_counts *counts)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < WORK_KINDS; kind++)
		sum += counts->work_count[kind];
	return sum;
}

#endif
