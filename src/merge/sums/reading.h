/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass over a log: joins its events and passes them on in the order of the log.
 */
#ifndef XT_MERGE_READING_H
#define XT_MERGE_READING_H

#include "merge/base/labels.h"
#include "merge/sums/event_filter.h"
#include "merge/sums/exporter.h"
#include "merge/sums/log_counts.h"
#include "merge/sums/transfers.h"
#include "merge/sums/run.h"
#include "merge/sums/rank_log.h"
#include "merge/sums/callsite_stats.h"
#include "merge/read/correlate.h"
#include "merge/sums/memory.h"
#include "merge/sums/missing.h"
#include "merge/sums/threads.h"
#include "merge/sums/timeline.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/whole_graphs.h"

/* How calls and work are joined. */
struct joining {
	struct correlate *correlate;
	struct replays *replays; /* NULL: no graph has conditional nodes */
	uint8_t *has_stack;	 /* by XT_STACK_ID: 1 if the log defines it */
	struct missing missing;
	struct whole_graphs whole_graphs;
	uint64_t kernel_missing_count; /* valid after the last event */
	uint64_t kernel_invalid_count; /* kernels with impossible times */
};

/* The uses of events. */
struct reading_plan {
	bool exports_calls, exports_work; /* an exporter or a weight needs them */
	uint32_t exported_call_count;	  /* numbers the calls */
	bool observes_calls;		  /* calls have ranges, or matter for more than the join */
	bool sums_plainly;		  /* kernels outside graphs matter only for the sums */
};

/* The gaps between GPU work, and who caused them. */
struct reading_gaps {
	struct threads threads;
	struct idle_paths idle_paths;
	struct timeline *timeline; /* NULL if no weight needs it */
	struct collective_sums collectives;
	bool is_blind; /* many events are lost, so gaps may not be idle */
};

/* The sums of this log by topic. */
struct log_sums {
	struct log_counts counts;
	struct memory memory;
	struct transfer_sum *copies; /* by XT_COPY_SHAPE_ID */
	struct transfer_sum memsets[MEMORY_KINDS];
	struct callsites callsites; /* if the run looks for findings */
	struct rank_log rank_log;   /* if the run compares ranks */
};

/* A log while its events are read, and until its sums are those of the run. */
struct reading {
	struct run *run;
	struct sink *sinks;
	size_t sink_count;
	struct process process;
	struct model *model; /* process.model, writable */
	struct frames frames;
	struct aggregate aggregate;
	struct joining join;
	struct reading_plan plan;
	struct reading_gaps gaps;
	struct log_sums sums;
	struct event_filter event_filter;
	struct xt_damage damage; /* of both passes, valid after the last event */
	struct pack *packed;	 /* for exporters of single events; NULL if not read apart */
	int error;		 /* first error of a callback that cannot return it */
};

#endif
