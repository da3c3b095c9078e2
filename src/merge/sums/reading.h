/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass over a log: joins its events and passes them on in the order of the log. Finds
 * the owner of each event, and adds its cost to the sums.
 */
#ifndef XT_MERGE_READING_H
#define XT_MERGE_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"
#include "merge/base/labels.h"
#include "merge/read/correlate.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/callsite_stats.h"
#include "merge/sums/exporter.h"
#include "merge/sums/losses.h"
#include "merge/sums/memory.h"
#include "merge/sums/rank_log.h"
#include "merge/sums/run.h"
#include "merge/sums/timeline.h"
#include "merge/read/iterations.h"

/*
 * The kernels of CUDA graphs that were recorded as a whole. The log has their names and the call
 * paths that created them, but no times: each counts once for each launch of its graph. Zeros are
 * empty.
 */
struct whole_graphs {
	struct interner keys; /* an owner and an executable graph */
	struct whole_launches {
		uint64_t first_ns;
		uint64_t count;
	} * list; /* by id of the key - 1 */
	size_t capacity;
};

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
	uint32_t exported_call_count;	  /* so far: the number of the last one */
	bool observes_calls; /* calls need ranges, or are needed for more than the join */
	bool sums_plainly;   /* kernels outside graphs matter only for the sums */
	struct iterations iterations;
	uint64_t steady_from_ns, steady_ns; /* the iterations without warm-up */
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
	struct callsites steady;    /* the same of the steps after the warm-up, if there are any */
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
	struct pack *packed;	 /* exporters' results from another process; NULL: none */
	int error;		 /* first error of a callback that cannot return it */
};

/* Finds the stacks that the log defines. Call it before the others. */
void reading_find_stacks(struct reading *reading);

/* Finds the iterations, if the run needs them. Call it before events and exporters begin. */
void reading_find_iterations(struct reading *reading);

/* Whether a call or work at this time is in a step after the warm-up. */
static inline bool reading_is_steady(const struct reading *reading, uint64_t time_ns)
{
	return time_ns - reading->plan.steady_from_ns < reading->plan.steady_ns;
}

/* Returns the root frame for the paths of work, as the settings choose it. */
uint32_t owner_root(const struct run *run, const struct model *model, uint32_t stream,
		    uint32_t thread);

/* Fills in the owner of the call itself. */
void owner_of_call(struct reading *reading, const struct launch *call, struct owner *owner);

/*
 * Finds the owner of work as far as possible without its call. Fills it in place: copying a struct
 * that was just written in small pieces is slow.
 */
void owner_without_call(const struct reading *reading, const struct work *work,
			struct owner *owner);

/* Kernels that add_plainly() added, but not yet to the counters of the run. */
struct plain_sums {
	uint64_t count;
	uint64_t gpu_ns;
};

/*
 * Like attribute_work(), for a kernel outside graphs, if reading->plan.sums_plainly. Returns false,
 * without any effect, if the aggregate expected another owner. Then use attribute_work(). The
 * stack needs no check: an entry with a stack shows that the log has it.
 */
static inline bool add_plainly(struct reading *reading, const struct launch *launch, uint32_t shape,
			       uint64_t duration_ns, struct plain_sums *sums)
{
	struct aggregate *aggregate = &reading->aggregate;
	uint32_t next = aggregate->count ? aggregate->entries[aggregate->last].next : 0;
	struct total *total = &aggregate->entries[next];

	if (next >= aggregate->count || !total->is_plain || total->owner.stack != launch->stack ||
	    total->owner.what != shape || total->owner.api != launch->api ||
	    total->owner.range != launch->range)
		return false;
	aggregate->last = next;
	total->weights[WEIGHT_GPU_TIME] += duration_ns;
	total->weights[WEIGHT_COUNT]++;
	sums->count++;
	sums->gpu_ns += duration_ns;
	return true;
}

void reading_add_plain_sums(struct reading *reading, const struct plain_sums *sums);

/* Adds the time that the CPU waited in a call, for the weight cpu-wait. */
void reading_add_wait(struct reading *reading, const struct launch *call, uint64_t own_ns);

/*
 * Callbacks for a struct work_receiver, whose context is the reading. attribute_work() finds the
 * owner of work and adds it to the aggregate. If there are replays, attribute_work_with_id() is
 * used instead for work that has a correlation id.
 */
void attribute_work(void *context, const struct work *work, const struct launch *launch);
void attribute_work_with_id(void *context, const struct work *work, const struct launch *launch);
void reading_ran(void *context, const struct stretch *stretch);
void reading_idle_moved(void *context, const struct idle_move *move);
void reading_memory_changed(void *context, uint32_t pool, uint64_t time_ns, uint64_t live_bytes);

/*
 * The event filter decides which events match the user's selection. Call these functions only if
 * reading->run has a selection.
 */

/* True if the time is within the selected window. */
bool event_filter_wants_time(const struct reading *reading, uint64_t time_ns);

/* True if the call's time, range and path match. */
bool event_filter_wants_call(struct reading *reading, const struct launch *call);

void event_filter_free(struct event_filter *event_filter);

/*
 * Adds the samples of reading->process.cpu to the aggregate, and passes them to the exporters: the
 * weights cpu-time and off-cpu.
 */
void cpu_sums_add(struct reading *reading);

/*
 * Whether the user selected this sample of reading->process. A sample belongs to the window in
 * which it begins. No NVTX range is known for it.
 */
bool cpu_sums_wants(const struct reading *reading, const struct cpu_sample *sample);

/* Adds the kernels in graphs recorded as a whole to the sums of the log, after the last event. */
void whole_graphs_finish(struct reading *reading);

void whole_graphs_free(struct whole_graphs *graphs);

/* Calls a function of each exporter that has it and reads this log. */
#define EXPORT(reading, function, ...)                                                             \
	for (struct sink *to = (reading)->sinks; to < (reading)->sinks + (reading)->sink_count;    \
	     to++)                                                                                 \
		if (to->exporter->function && sink_reads(to, &(reading)->process))                 \
	to->exporter->function(to, &(reading)->process, ##__VA_ARGS__)

#endif
