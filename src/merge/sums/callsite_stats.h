/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rules of findings look at: sums by callsite, which is a call stack and the API function
 * called there, and by device. Kept while a log is read; memory grows with the number of call
 * sites, never with that of calls.
 */
#ifndef XT_MERGE_CALLSITE_STATS_H
#define XT_MERGE_CALLSITE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/correlate.h"
#include "merge/read/model.h"
#include "merge/sums/idle.h"
#include "merge/sums/timeline.h"
#include "merge/sums/aggregate.h"

#define CALLSITE_NONE 0

/* The longest gaps of a class are left out of what idle time costs: the warming up of a program has
 * a few long ones, a habit many. */
#define DEVICE_LONGEST_GAPS 8

/* A launch alone makes nobody late for longer: there was something else, such as code to be loaded. */
#define LAUNCH_DELAY_MAX_NS 100000

#define CALLSITES_DEVICES_MAX 64
#define CALLSITES_STREAMS_MAX 4096
#define CALLSITES_THREADS     64 /* that are told apart by site … */
#define CALLSITES_VISITS      8	 /* … and in what they did since their last call there */

/* Of callsites beyond these nothing is found: of one stack, and of a log. */
#define CALLSITES_APIS_MAX 256
#define CALLSITES_MAX	   (1u << 18)

/* Copies as the GPU did them. */
struct copy_stats {
	uint64_t count;
	uint64_t bytes;
	uint64_t ns;
};

struct callsite {
	uint32_t stack;	 /* XT_STACK_ID, 0: not known */
	uint32_t next;	 /* another site of that stack */
	uint32_t range;	 /* NVTX range that more of its time is in than in all others, if one has */
	uint32_t thread; /* of the last call */
	uint32_t stream; /* of its last work, 0: none */
	uint16_t api;	 /* place in the model's apis */
	uint8_t class;	 /* enum xt_api_class */
	bool waits;	 /* for the GPU */
	bool is_async;	 /* by its name */
	bool is_explained; /* a finding has explained its idle time */

	uint64_t range_lead_ns; /* what the range has beyond others, as counted so far */
	uint64_t threads; /* that call here, a bit for each; SITES_THREADS and more share theirs */
	uint64_t count;
	uint64_t failed_count;	   /* what is an answer and no error left aside */
	uint64_t last_result;	   /* of those that failed */
	uint64_t time_ns;	   /* in it, less calls within it */
	uint64_t after_work_count; /* since its last call, the thread launched something */
	uint64_t after_free_count; /* … or gave memory back */
	uint64_t repeated_count;   /* of copies: the thread's last call but for waits was a copy */
	uint64_t free_ns;	   /* of allocations: in which memory was given back before them */
	uint64_t stall_count; /* the GPU ran dry around it: before the thread's next launch … */
	uint64_t stall_ns;    /* … for so long */
	uint64_t stall_idle_ns[IDLE_CLASSES];	 /* … by why, without the longest … */
	uint64_t stall_longest_ns[IDLE_CLASSES]; /* … which was so long */
	uint64_t idle_ns[IDLE_CLASSES];		 /* before its work, but for what calls held up */
	uint64_t idle_count[IDLE_CLASSES];
	uint64_t late_ns; /* of IDLE_LAUNCH_LATE, of each gap SITES_LATE_MOST_NS at most */

	struct copy_stats copies;   /* all of them; … */
	struct copy_stats pinned;   /* … between a device and pinned memory of the host … */
	struct copy_stats pageable; /* … and pageable memory */

	/* Of the totals, once all events are read: */
	uint64_t kernel_count;
	uint64_t kernel_ns;
	uint64_t small_count;	/* kernels of shapes that leave most of the device unused … */
	uint64_t small_ns;	/* … their share of the time, gpu-exclusive … */
	uint64_t small_loss_ns; /* … and what of that would be won on a full device */
	uint32_t small_shape;	/* XT_SHAPE_ID of the one that runs longest */
	uint64_t small_shape_ns;
	uint32_t first_stream; /* of its kernels … */
	bool has_streams;      /* … there are several */
};

/* What ran on a device. */
struct device_stats {
	uint32_t device;
	uint64_t kernel_count;	  /* collectives left aside, here and below */
	uint64_t kernel_ns;	  /* the sum of their durations */
	uint64_t kernel_union_ns; /* at least one ran */
	uint64_t active_union_ns; /* at least one kernel or collective ran */
	uint64_t work_union_ns;	  /* a kernel, copy or set did */
	uint64_t first_ns, last_ns;
	uint64_t kernels_until_ns, active_until_ns, work_until_ns;
	uint32_t last_stream; /* of the kernel that ended last */
	uint64_t fill_ns;     /* of kernel_ns, as much as they fill it; once all events are read */
	uint64_t gap_count[IDLE_CLASSES];
	uint64_t gap_ns[IDLE_CLASSES];
	uint64_t longest_ns[IDLE_CLASSES][DEVICE_LONGEST_GAPS]; /* of these, in no order */
};

/* What ran in a stream. */
struct stream_stats {
	uint64_t until_ns;
	uint64_t serialized_count; /* kernels that waited for another stream, though it had room */
	uint64_t serialized_ns;
	uint64_t shared_count; /* kernels of sites that use several streams … */
	uint64_t shared_ns;
	uint64_t shared_fill_ns;
	uint32_t top_callsite; /* of its kernels, shared or not, the one with most */
	uint64_t top_ns;
};

/* What a thread had done by its last call at a site. */
struct callsite_visit {
	uint32_t thread;
	bool is_known;
	uint64_t launch_count;
	uint64_t free_count;
};

struct thread_stats {
	uint64_t launch_count;
	uint64_t free_count;
	uint64_t free_ns;    /* not yet counted for an allocation */
	uint64_t blocker_ns; /* the longest call since the last launch that holds a thread up … */
	uint32_t blocker;    /* … and where it was */
	bool blocker_is_slow; /* … which is no wait, and takes long by itself */
	uint8_t last_class;   /* of its last call but for waits */
};

struct callsites {
	const struct model *model;
	const struct threads *threads_info;
	struct callsite *list; /* from 1 on */
	size_t count;
	size_t capacity;
	uint32_t *by_stack; /* by XT_STACK_ID: the first of its sites */
	size_t stack_count;
	struct callsite_visit *visits; /* SITES_TURNS for each site */
	size_t visit_capacity;
	struct thread_stats *threads; /* by XT_THREAD_ID */
	size_t thread_count;
	struct device_stats devices[CALLSITES_DEVICES_MAX];
	size_t device_count;
	struct stream_stats *streams; /* by XT_STREAM_ID; the last is all beyond */
	size_t stream_count;
	uint64_t first_ns, last_ns; /* of all calls and work */
	int error;		    /* -ENOMEM, once memory has run out */
};

/* 0 or -ENOMEM; sites_free() in any case. threads and model must outlive them. */
int callsites_init(struct callsites *callsites, const struct model *model,
		   const struct threads *threads);
void callsites_free(struct callsites *callsites);

/* Takes note of a call, own_ns as threads_add_call() has it, and writes to it which site it is of, and which
 * had held its thread up. */
void callsites_add_call(struct callsites *callsites, struct launch *call, uint64_t self_ns,
			uint64_t result);

/* Takes note of a copy. */
void callsites_add_copy(struct callsites *callsites, const struct work *work,
			const struct launch *launch);

/* Takes note of work of a device, in the order of its start. */
void callsites_add_work(struct callsites *callsites, const struct stretch *stretch);

/* The site of that stack and place among the model's apis; SITE_NONE: none is known. */
uint32_t callsites_find(const struct callsites *callsites, uint32_t stack, uint16_t api);

/* All events are read: what the totals of the log say goes to the sites (sites_finish.c). */
void callsites_finish(struct callsites *callsites, const struct aggregate *totals);

/* The idle time of a class on that device, without its longest gaps. */
uint64_t device_idle_ns(const struct device_stats *device, enum idle_class class);

/*
 * The time that the process was at work: from the first to the last work of its devices, but for the
 * longest gaps in which nothing was submitted, such as those of a program that starts up. Without any
 * work: from its first call to its last.
 */
uint64_t callsites_active_ns(const struct callsites *callsites);

/* Sums of foreign numbers stay at the end of what there is room for. */
static inline void saturating_add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

/* What of ns is for part of whole: all if that is not less. */
static inline uint64_t scale_ns(uint64_t ns, uint64_t part, uint64_t whole)
{
	return part < whole ? (uint64_t)((unsigned __int128)ns * part / whole) : ns;
}

#endif
