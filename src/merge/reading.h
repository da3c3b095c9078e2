/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second pass over a log: joins its events and passes them on in the order of the log.
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

/* Which rows of a log the user's selection includes (event_filter.c). */
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

struct reading {
	struct run *run;
	struct sink *sinks;
	size_t sink_count;
	struct process process;
	struct model *model; /* process.model, writable */
	struct frames frames;
	struct aggregate aggregate;
	struct correlate *correlate;
	struct replays *replays; /* NULL: no graph has conditional nodes */
	uint8_t *has_stack;	 /* by XT_STACK_ID: 1 if the log defines it */
	struct threads threads;
	struct missing missing;
	uint64_t kernel_missing_count; /* valid after the last event */
	uint64_t kernel_invalid_count; /* kernels with impossible times */
	struct memory memory;
	struct timeline *timeline;   /* NULL if no weight needs it */
	struct transfer_sum *copies; /* by XT_COPY_SHAPE_ID */
	struct transfer_sum memsets[MEMORY_KINDS];
	struct event_filter event_filter;
	struct callsites callsites;	  /* if the run looks for findings */
	struct xt_damage damage;	  /* of both passes, valid after the last event */
	bool exports_calls, exports_work; /* an exporter or a weight needs them */
	struct collective_sums collectives;
	bool is_blind; /* many events are lost, so gaps may not be idle */
	int error;     /* first error of a callback that cannot return it */
};

/*
 * Reads all events of the log. has_helper: decompress on a second thread. Changes only the reading,
 * its model and the counters of its run, unless there are exporters of single events or a
 * selection. Returns 0 or -ENOMEM.
 */
int reading_events(struct reading *reading, struct xt_reader *reader, bool has_helper,
		   struct progress *progress);

/* Adds the totals of the log to the run. Returns 0 or -ENOMEM. */
int reading_finish(struct reading *reading);

/* Returns whether an exporter needs single events. */
bool sinks_want_events(const struct sink *sinks, size_t sink_count);

/* Returns the index of a label. Numbers without a label share index 0. */
static inline uint32_t label_index(uint64_t number, uint32_t label_count)
{
	return number < label_count ? (uint32_t)number : 0;
}

/* In sums/attribute.c, called by events.c. */

/*
 * Finds the owner of work as far as possible without its call. Fills it in place: copying a struct
 * that was just written in small pieces is slow.
 */
void owner_without_call(const struct reading *reading, const struct work *work,
			struct owner *owner);

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
void reading_memory_changed(void *context, uint32_t pool, uint64_t time_ns, uint64_t live_bytes);

/* Frees the tables of the reading. */
void reading_free(struct reading *reading);

/*
 * Adds the aggregate of a log to the tree run->paths, and passes it to the exporters. A path has
 * the frames of the stack, the API and the leaf. For graph work, the path that created the node
 * comes before the leaf. Returns 0 or -ENOMEM.
 */
int build_tree(struct reading *reading);

/*
 * Returns the last node of the path of an owner, created if needed; PATH_FAILED if out of memory.
 */
uint32_t build_tree_path(struct reading *reading, const struct owner *owner);

/*
 * Sums the GPU time of each NVTX range, including nested ranges, in run->ranges. Returns 0 or
 * -ENOMEM.
 */
int build_range_tree(struct run *run, const struct process *process,
		     const struct aggregate *aggregate);

/*
 * Returns the sanitised "text" or "domain:text" as a name in names; NAME_FAILED if out of memory.
 */
uint32_t range_label(struct names *names, const struct model *model, uint32_t domain, uint32_t text,
		     const char *before, const char *after);

/*
 * Returns the name of a category of a domain, or its number, as a name in names; NAME_FAILED if out
 * of memory.
 */
uint32_t range_category(struct names *names, const struct model *model, uint32_t domain,
			uint32_t category);

/* Sanitises untrusted text. Returns a name in names; NAME_FAILED if out of memory. */
uint32_t clean_name(struct names *names, const char *text);

#define ROOT_UNKNOWN UINT32_MAX	      /* a device that is not in the log */
#define ROOT_HOST    (UINT32_MAX - 1) /* host work, which has no device or stream */

/* Returns the root frame for the paths of work, as the settings choose it. */
uint32_t owner_root(const struct run *run, const struct model *model, uint32_t stream,
		    uint32_t thread);

#endif
