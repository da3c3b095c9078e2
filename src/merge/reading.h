/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second reading of a log: its events, joined and handed on as they come.
 */
#ifndef XT_MERGE_READING_H
#define XT_MERGE_READING_H

#include "merge/base/labels.h"
#include "merge/exporter.h"
#include "merge/sums/callsite_stats.h"
#include "merge/read/replays.h"
#include "merge/sums/memory.h"
#include "merge/sums/missing.h"
#include "merge/sums/threads.h"
#include "merge/sums/timeline.h"
#include "merge/sums/aggregate.h"

/* What was found out of a log for the user's selection (sieve.c). */
struct verdicts {
	uint8_t *list; /* by place in totals */
	size_t capacity;
};

struct event_filter {
	uint8_t *ranges; /* by node of the model's ranges */
	size_t range_capacity;
	struct aggregate call_owners; /* of calls that were looked at; their sums are not used */
	struct verdicts calls;	      /* by place in these */
	struct verdicts work;
};

struct reading {
	struct run *run;
	struct sink *sinks;
	size_t sink_count;
	struct process process;
	struct model *model; /* process.model, to be written to */
	struct frames frames;
	struct aggregate aggregate;
	struct correlate *correlate;
	struct replays *replays; /* NULL: no graph has conditional nodes */
	uint8_t *has_stack;	 /* by XT_STACK_ID: 1, the log defines it */
	struct threads threads;
	struct missing missing;
	uint64_t kernel_missing_count; /* once all is read */
	uint64_t kernel_invalid_count; /* kernels whose times cannot be */
	struct memory memory;
	struct timeline *timeline;   /* NULL if no weight needs it */
	struct transfer_sum *copies; /* by XT_COPY_SHAPE_ID */
	struct transfer_sum memsets[MEMORY_KINDS];
	struct event_filter event_filter;
	struct callsites callsites;	  /* if the run looks for findings */
	struct xt_damage damage;	  /* of both readings, once all is read */
	bool exports_calls, exports_work; /* anyone but what is here wants to know of each */
	struct collective_sums collectives;
	bool is_blind; /* work of many launches is lost: idle may be none */
	int error;     /* of a listener, which cannot return it */
};

/*
 * Reads all events of the log of reading->process by that reader, with a thread beside that unpacks
 * them, or alone. Apart from exporters that want to be told of events, and from a selection, it touches
 * nothing but the reading, its model, and what events count in its run. 0 or -ENOMEM.
 */
int reading_events(struct reading *reading, struct xt_reader *reader, bool has_helper,
		   struct progress *progress);

/* What the log said as a whole goes to the run, which is that of all logs now. 0 or -ENOMEM. */
int reading_finish(struct reading *reading);

/* Does anyone want to be told of events as they come? */
bool sinks_want_events(const struct sink *sinks, size_t sink_count);

/* A number that a label stands for; all that have none are one. */
static inline uint32_t label_index(uint64_t number, uint32_t label_count)
{
	return number < label_count ? (uint32_t)number : 0;
}

/* attribute.c: what events.c calls with what it reads. */

/* Whom work belongs to as far as that is known without its call. (Filled in place: a copy of what
 * was just written in small pieces is slow.) */
void owner_without_call(const struct reading *reading, const struct work *work,
			struct owner *owner);

/* The CPU waited for so long in that call: what a path of --weight cpu-wait ends in. */
void reading_add_wait(struct reading *reading, const struct launch *call, uint64_t own_ns);

/* Listeners, with the reading as their context; the second for what is joined by id where there are
 * replays. */
void reading_joined(void *context, const struct work *work, const struct launch *launch);
void reading_joined_by_id(void *context, const struct work *work, const struct launch *launch);
void reading_ran(void *context, const struct stretch *stretch);
void reading_memory_changed(void *context, uint32_t pool, uint64_t time_ns, uint64_t live_bytes);

/* Frees what the reading made. */
void reading_free(struct reading *reading);

/*
 * Puts the totals of a log into the tree of run->paths: below the frames of the stack, the API's
 * name, for the work of graphs the path that made the node, and the leaf; and tells the exporters
 * of them. 0 or -ENOMEM.
 */
int build_tree(struct reading *reading);

/* The end of the path of an owner, made if need be; PATH_FAILED if memory ran out. */
uint32_t build_tree_path(struct reading *reading, const struct owner *owner);

/* Adds up the GPU time of each NVTX range, with all that is in it, in run->ranges. 0 or -ENOMEM. */
int build_range_tree(struct run *run, const struct process *process,
		     const struct aggregate *aggregate);

/* "text", or "domain:text", clean, as a name in names; NAME_FAILED if memory ran out. */
uint32_t range_label(struct names *names, const struct model *model, uint32_t domain, uint32_t text,
		     const char *before, const char *after);

/* The name of a category of a domain, or its number; likewise. */
uint32_t range_category(struct names *names, const struct model *model, uint32_t domain,
			uint32_t category);

/* Foreign text, clean, as a name in names; NAME_FAILED if memory ran out. */
uint32_t clean_name(struct names *names, const char *text);

#define ROOT_UNKNOWN UINT32_MAX	      /* a device that the log does not tell */
#define ROOT_HOST    (UINT32_MAX - 1) /* in place of a device or stream: what is of none */

/* The root of all paths that owner.root stands for, by the settings, of that work. */
uint32_t owner_root(const struct run *run, const struct model *model, uint32_t stream,
		    uint32_t thread);

#endif
