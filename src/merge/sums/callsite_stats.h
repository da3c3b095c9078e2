/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input of the finding rules: sums by callsite, stream and device. A callsite is a call stack plus
 * the API function called there. The sums are updated while a log is read. Memory grows with the
 * number of callsites, not with the number of calls.
 */
#ifndef XT_MERGE_CALLSITE_STATS_H
#define XT_MERGE_CALLSITE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "idle/idle.h"
#include "merge/read/correlate.h"
#include "merge/read/model.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/timeline.h"

#define CALLSITE_NONE 0

/*
 * The longest gaps of each idle class are ignored. A few long gaps are usually warm-up; a real
 * problem causes many.
 */
#define DEVICE_LONGEST_GAPS 8

/* Launch latency alone cannot explain a longer delay. Loading code can, for example. */
#define LAUNCH_DELAY_MAX_NS 100000

#define CALLSITES_DEVICES_MAX 64
#define CALLSITES_STREAMS_MAX 4096
#define CALLSITES_THREADS     64 /* bits of callsite.threads */
#define CALLSITES_VISITS      8	 /* threads whose last visit is remembered per callsite */

/* Limits on the callsites of one stack and of one log. Others are not analysed. */
#define CALLSITES_APIS_MAX 256
#define CALLSITES_MAX	   (1u << 18)

/* Copies, as measured on the GPU. */
struct copy_stats {
	uint64_t count;
	uint64_t bytes;
	uint64_t ns;
};

struct callsite {
	uint32_t stack;	   /* XT_STACK_ID, 0: unknown */
	uint32_t next;	   /* next callsite with the same stack */
	uint32_t range;	   /* NVTX range with more than half of its time, if any has that */
	uint32_t thread;   /* thread of the last call */
	uint32_t stream;   /* stream of its last work, 0: none */
	uint16_t api;	   /* index in the model's apis */
	uint8_t class;	   /* enum xt_api_class */
	bool waits;	   /* the call blocks until the GPU is done */
	bool is_async;	   /* the function name contains "Async" */
	bool is_explained; /* a finding already covers its idle time */

	uint64_t range_lead_ns; /* majority vote: time of range less that of all others, so far */
	uint64_t threads; /* calling threads, one bit for each thread id modulo CALLSITES_THREADS */
	uint64_t count;
	uint64_t failed_count; /* calls with an error; cudaErrorNotReady and the like are none */
	uint64_t last_result;  /* error code of the last failed call */
	uint64_t time_ns;      /* time in the call, without nested calls */
	/* Calls here, by what the same thread did since its previous call here: */
	uint64_t after_work_count; /* launched work */
	uint64_t after_free_count; /* freed memory */
	uint64_t repeated_count;   /* copies after a copy of the thread, waits aside */
	uint64_t free_ns;	   /* allocations: time of the frees directly before them */
	uint64_t stall_count;	   /* calls during which the GPU ran out of work */
	uint64_t stall_ns;	   /* GPU idle time due to these calls */
	uint64_t stall_idle_ns[IDLE_CLASSES];	 /* stall_ns by class, without the longest gap */
	uint64_t stall_longest_ns[IDLE_CLASSES]; /* the longest gap of each class */
	uint64_t idle_ns[IDLE_CLASSES]; /* before its work, if no blocking call caused it */
	uint64_t idle_count[IDLE_CLASSES];
	uint64_t late_ns; /* IDLE_LAUNCH_LATE time, at most LAUNCH_DELAY_MAX_NS of each gap */

	struct copy_stats copies;   /* all copies */
	struct copy_stats pinned;   /* copies between a device and pinned host memory */
	struct copy_stats pageable; /* copies between a device and pageable host memory */

	/* Set by callsites_finish(): */
	uint64_t kernel_count;
	uint64_t kernel_ns;
	uint64_t small_count;	/* kernels whose shape leaves most of the device unused */
	uint64_t small_ns;	/* exclusive GPU time of these */
	uint64_t small_loss_ns; /* part of small_ns that a full device would save */
	uint32_t small_shape;	/* XT_SHAPE_ID of the small shape with the most GPU time */
	uint64_t small_shape_ns;
	uint32_t first_stream; /* stream of its first kernel */
	bool has_streams;      /* its kernels use several streams */
};

struct longest_gap {
	uint64_t ns;
	uint64_t from_ns;
	enum idle_class class; /* with most of the time */
	uint32_t callsite;     /* of the work that ended it; CALLSITE_NONE: unknown */
};

/* Time in which at least one piece of some kind of work ran, and the end of that work so far. */
struct union_time {
	uint64_t ns, until_ns;
};

/* Idle time of one class on a device. */
struct device_idle {
	uint64_t ns;	    /* of all gaps */
	uint64_t gap_count; /* without short gaps, and what blocking calls caused */
	uint64_t gap_ns;    /* of these */
	uint64_t longest_ns[DEVICE_LONGEST_GAPS]; /* the longest of these, unordered */
};

/* Sums of one device. */
struct device_stats {
	uint32_t device;
	uint64_t kernel_count; /* kernels; collectives are excluded from all kernel_ fields */
	uint64_t kernel_ns;    /* sum of the durations */
	struct union_time kernel_union;
	struct union_time active_union; /* kernels and collectives */
	struct union_time work_union;	/* kernels, copies and memsets */
	uint64_t first_ns, last_ns;
	uint64_t paused_before_ns, paused_ns; /* as in struct stretch: before and since first_ns */
	uint32_t first_callsite;	      /* of the first work; CALLSITE_NONE: unknown */
	struct device_idle idle[IDLE_CLASSES];
	struct longest_gap longest_gap;
	uint32_t last_stream; /* stream of the kernel that ended last */
	uint64_t fill_ns; /* kernel_ns, each times the filled share of the device; set at the end */
};

/* Sums of one stream. */
struct stream_stats {
	uint64_t until_ns;
	uint64_t serialized_count; /* kernels that waited for a stream though there was room */
	uint64_t serialized_ns;
	uint64_t shared_count; /* kernels of callsites that use several streams */
	uint64_t shared_ns;
	uint64_t shared_fill_ns;
	uint32_t top_callsite; /* callsite of the owner with the most kernel time */
	uint64_t top_ns;
};

/* Counters of a thread at its last call from a callsite. */
struct callsite_visit {
	uint32_t thread;
	bool is_known;
	uint64_t launch_count;
	uint64_t free_count;
};

struct thread_stats {
	uint64_t launch_count;
	uint64_t free_count;
	uint64_t free_ns;     /* time of frees since the last allocation */
	uint64_t blocker_ns;  /* duration of the longest blocking call since the last launch */
	uint32_t blocker;     /* callsite of that call */
	bool blocker_is_slow; /* that call does not wait for the GPU but is slow itself */
	uint8_t last_class;   /* class of its last call other than a wait */
};

struct callsites {
	const struct model *model;
	const struct threads *threads_info;
	LIST(struct callsite);		     /* entry 0 is unused */
	uint32_t *by_stack;		     /* first callsite by XT_STACK_ID */
	BY_ID(struct callsite_visit) visits; /* CALLSITES_VISITS for each callsite */
	struct thread_stats *threads;	     /* by XT_THREAD_ID */
	struct device_stats devices[CALLSITES_DEVICES_MAX];
	size_t device_count;
	struct stream_stats *streams; /* by XT_STREAM_ID; the last entry: all beyond the limit */
	size_t stream_count;
	uint64_t first_ns, last_ns; /* of all calls and work */
};

/* Call callsites_free() in any case. threads and model must outlive the callsites. */
void callsites_init(struct callsites *callsites, const struct model *model,
		    const struct threads *threads);
void callsites_free(struct callsites *callsites);

/*
 * Adds a call and stores its callsite and its blocker in the call. self_ns comes from
 * threads_add_call().
 */
void callsites_add_call(struct callsites *callsites, struct launch *call, uint64_t self_ns,
			uint64_t result);

/* Adds a copy. */
void callsites_add_copy(struct callsites *callsites, const struct work *work,
			const struct launch *launch);

/* Adds work of a device. Work must come in order of its start time. */
void callsites_add_work(struct callsites *callsites, const struct stretch *stretch);

/* Returns the callsite `of` other sums of the same log; CALLSITE_NONE if it is not in these. */
uint32_t callsites_same(const struct callsites *callsites, const struct callsites *others,
			uint32_t of);

/*
 * Adds what the totals of the log with these marks say about each callsite. Call it after the last
 * event.
 */
void callsites_finish(struct callsites *callsites, const struct aggregate *totals, uint32_t marks);

/* The sum of the gaps, without the longest. */
uint64_t device_idle_ns(const struct device_idle *idle);

/*
 * Time from the first to the last work of the device, without pauses of recording. Work that was
 * launched before a pause is recorded while it lasts, so only pauses between work are left out.
 */
uint64_t device_span_ns(const struct device_stats *device);

/*
 * Active time of the process: from the first to the last work of its devices. The longest gaps in
 * which nothing was submitted, such as start-up, and pauses of recording do not count. If there is
 * no work, from its first call to its last.
 */
uint64_t callsites_active_ns(const struct callsites *callsites);

/* ns * part / whole, or ns if part >= whole. */
static inline uint64_t scale_ns(uint64_t ns, uint64_t part, uint64_t whole)
{
	return part < whole ? (uint64_t)((unsigned __int128)ns * part / whole) : ns;
}

#endif
