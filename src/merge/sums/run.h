/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data that a run has of all processes, for analyses and outputs: its sums, and what other
 * topics keep.
 */
#ifndef XT_MERGE_RUN_H
#define XT_MERGE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/names.h"
#include "merge/base/weights.h"
#include "merge/naming/joined_paths.h"
#include "merge/naming/paths.h"
#include "merge/read/correlate.h"
#include "merge/read/model.h"
#include "merge/read/ranges.h"
#include "merge/sums/build_tree.h"
#include "merge/sums/losses.h"
#include "merge/sums/memory.h"
#include "merge/sums/settings.h"
#include "merge/sums/timeline.h"

struct alignment;
struct compared_ranks;
struct conclusions;
struct exporter;
struct sink;
struct trust;

/* Counts of the events of one log, or of all logs of a run. */
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

/* Sums over the instances of an NVTX range. */
struct range_sums {
	uint64_t opened_count;
	uint32_t category; /* of the first instance; name in the tree of ranges, or NAME_EMPTY */
	bool has_several_categories; /* the instances differ in their category */
	struct range_payload payload;
};

/* The sums of NVTX ranges over all processes. build_range_tree() fills them. */
struct range_tree {
	struct paths tree;	       /* weights include nested ranges */
	BY_ID(struct range_sums) sums; /* by node of the tree */
	struct range_counts counts;
};

/* The part of a process that its log has. Times are since the start of the log. */
struct recorded_part {
	uint64_t from_ns, until_ns; /* of its events; from_ns is 0 if it has the beginning */
	uint64_t full_ns;	    /* when --max-size ended recording; 0: it did not */
	bool is_flight_recorder;    /* otherwise, --max-size dropped the beginning */
	char trigger[256];	    /* why the snapshot was taken; "": it is none */
};

/* When and how the processes of a run were recorded. */
struct recording {
	uint64_t pause_count; /* of recording, with the beginning that a log lacks */
	uint64_t paused_ns;
	uint64_t stop_count;	   /* pauses without records of allocations */
	uint64_t recorded_ns;	   /* time outside pauses, in logs that have pauses */
	uint64_t cut_count;	   /* logs whose beginning was dropped by a limit of size or time */
	struct recorded_part part; /* of the first log that has only a part of its process */
	uint64_t part_count;	   /* logs that have only a part */
	size_t attached_count;	   /* processes that ran already when the tracer was loaded */
	uint64_t attached_ns;	   /* the longest time that one of these ran before */
	uint64_t early_graph_count; /* launches of graphs that were made before recording began */
	bool has_simulated_gpu;
};

/* Times at which CUPTI was released to another tool. */
struct handoffs {
	uint64_t count;
	uint64_t total_ns;
	char first_tool[64];
};

/* Adds what the model of a log knows of pauses, missing beginnings and CUPTI. */
void recording_add(struct recording *recording, const struct model *model,
		   const struct xt_log_header *header);
void handoffs_add(struct handoffs *handoffs, const struct model *model);

/* Copies of a direction, or memsets of a kind of memory. */
struct transfer_sum {
	uint64_t count;
	uint64_t bytes;
	uint64_t gpu_ns;
};

struct transfer_row {
	uint32_t name;
	bool is_memset;
	struct transfer_sum sum;
};

/* Sums over all processes. Zeros are empty. */
struct transfers {
	LIST(struct transfer_row);
	BY_ID(size_t) places; /* row + 1 by name; 0: none */
};

/*
 * Adds a sum to the row of a copy kind, or of memsets of a memory kind (CUPTI's numbers). The rows
 * are named in this table of names.
 */
void transfers_add_copies(struct transfers *transfers, struct names *names,
			  const struct copy_shape *shape, const struct transfer_sum *sum);
void transfers_add_memsets(struct transfers *transfers, struct names *names, uint32_t memory,
			   const struct transfer_sum *sum);
void transfers_free(struct transfers *transfers);

/* Sort the rows by time, longest first. */
void transfers_sort(struct transfers *transfers);

/* GPU time by the kind of code that launched the work. */
struct code_sums {
	uint64_t backward_gpu_ns[JOIN_RESULTS]; /* by enum join_result */
	uint64_t user_code_gpu_ns;		/* of paths with a frame of the user's own code */
	uint64_t compiled_unknown_gpu_ns;	/* of code of torch.compile without source lines */
};

/* The sums over all processes read so far, by topic. */
struct sums {
	struct log_counts events;
	struct code_sums code;
	struct range_tree ranges;
	struct transfers transfers;
	struct memory_sums memory;
	struct collective_sums collectives; /* if idle time was computed */
	struct rank_spread spread;
	struct recording recording;
	struct handoffs handoffs;
	struct loss_sums losses;
};

/* Data that the outputs, the findings and the comparison of ranks need. */
struct needs {
	uint32_t weights;	 /* bit 1 << enum weight for each weight that an output shows */
	uint32_t weights_needed; /* the same, and those that findings need */
	bool origins;
	bool findings;
	bool iterations;
	bool ranks;		     /* the comparison of their collectives */
	struct alignment *alignment; /* not NULL: nothing else (communicators.h) */
};

/*
 * The data of all processes read so far. Each part belongs to the topic that defines its structure:
 * a file that uses a part includes the header of that topic.
 */
struct run {
	const struct settings *settings;
	const struct inputs *inputs;
	struct report *report;
	struct needs needs;
	struct selection *selection; /* NULL: everything, and no frame is hidden */
	char **labels; /* of the processes read so far, by index of their log; others: NULL */
	struct paths paths;
	struct run_names *naming;
	struct cpu_data *cpu; /* its logs are complete before the first log is read */
	struct sums *sums;
	struct compared_ranks *compared;
	struct conclusions *found;
	const struct trust *trust; /* NULL before the end */
	struct {
		const struct sink *list;
		size_t count;
	} analyses; /* that outputs read; see run_analysis() */
};

/* True if the user's selection excludes work. */
static inline bool run_is_part(const struct run *run)
{
	return run->selection && wanted_is_part(run->selection->wanted);
}

/* True if the weight must be computed. */
static inline bool run_wants(const struct run *run, enum weight weight)
{
	return run->needs.weights_needed >> weight & 1;
}

/* The weights to list, bit 1 << enum weight for each. */
uint32_t run_listed_weights(const struct run *run);

/* Returns the state of an analysis, or NULL if no output names it. */
const void *run_analysis(const struct run *run, const struct exporter *analysis);

#endif
