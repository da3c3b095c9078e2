/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of all devices in order of its start, for the weights that depend on concurrent work:
 * gpu-exclusive and gpu-idle.
 */
#ifndef XT_MERGE_TIMELINE_H
#define XT_MERGE_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "idle/idle.h"
#include "merge/read/correlate.h"
#include "merge/read/model.h"
#include "merge/read/pauses.h"
#include "merge/read/reorder_buffer.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/idle_paths.h"

/*
 * Exclusive GPU time: while n pieces of work run on a device, each gets 1/n of the time.
 *
 * Work must be added in order of its start. The shares come from the integral of 1/n over time, in
 * units of 2^-64 ns. The cost of a piece therefore does not depend on what runs beside it. Shares
 * are whole ns. The rounding error of each share is carried to the next, so the shares of a busy
 * period add up to its length.
 */

#define EXCLUSIVE_RUNNING_MAX (1u << 16) /* far more than any GPU runs at once */

struct exclusive_running {
	uint64_t end_ns;
	unsigned __int128 from; /* value of the integral at its start */
	uint64_t sequence;	/* breaks ties between equal ends */
	uint32_t owner;
};

/* State of one device. Zeros, except for give, are a device that has not run anything. */
struct exclusive {
	void (*give)(void *context, uint32_t owner, uint64_t share_ns);
	void *context;
	struct exclusive_running *heap; /* ordered by end */
	size_t capacity;
	uint32_t count;
	uint64_t sequence;
	uint64_t now_ns;
	unsigned __int128 integral;
	unsigned __int128 carry; /* rounding error to carry, less than 1 ns */
	uint64_t busy_ns;	 /* busy time since the device was last idle */
	uint64_t given_ns;	 /* part of busy_ns already given out */
	uint64_t dropped_count;	 /* pieces of work beyond EXCLUSIVE_RUNNING_MAX */
};

/* Adds work. Time before an earlier added start is not shared again. */
void exclusive_add(struct exclusive *exclusive, uint64_t start_ns, uint64_t end_ns, uint32_t owner);

/* End all running work. Call it after the last exclusive_add(). */
void exclusive_finish(struct exclusive *exclusive);
void exclusive_free(struct exclusive *exclusive);

/*
 * Timelines of the threads of a log, and which API functions wait for the GPU. The calls of a
 * thread come in the order in which they returned.
 */

#define THREADS_CHECKPOINTS_MAX (1u << 20) /* of all threads; then the older half is thinned */

struct threads {
	struct thread_timeline *timelines; /* by XT_THREAD_ID; entry 0 is for unknown threads */
	size_t count;
	size_t checkpoint_count;
	size_t checkpoints_max;
	uint8_t *states;	  /* enum thread_state by index in the model's apis */
	struct aggregate callers; /* owners of calls that timelines name by index + 1; no sums */
};

/* State of a thread in a call of this API, judged by its class and name. */
enum thread_state threads_state_of(const struct model *model, const struct api *api);

/* Call threads_free() in any case. */
void threads_init(struct threads *threads, const struct model *model);
void threads_free(struct threads *threads);

/* True if the CPU waits for the GPU in this API: class SYNC, and copies that are not Async. */
static inline bool threads_waits(const struct threads *threads, uint16_t api)
{
	return thread_state_waits(threads->states[api]);
}

/* The timeline of a thread id. */
static inline struct thread_timeline *threads_timeline(const struct threads *threads,
						       uint32_t thread)
{
	return &threads->timelines[thread < threads->count ? thread : 0];
}

/*
 * Record that the call submits work. Returns the time since the thread's previous submission, at
 * most UINT32_MAX.
 */
uint32_t threads_note_submission(struct threads *threads, const struct launch *call);

/*
 * Adds a call. *own_ns is its duration without nested calls. owner: whom idle time during the call
 * belongs to; NULL: the work that ends it.
 */
void threads_add_call(struct threads *threads, const struct launch *call, uint64_t exit_ns,
		      const struct owner *owner, uint64_t *own_ns);

#define TIMELINE_DEVICES_MAX 256 /* larger device numbers share the last entry */

/* The time before work. */
struct stretch_gap {
	bool exists; /* the device was idle from from_ns to the start of the work */
	uint64_t from_ns;
	uint64_t idle_ns[IDLE_CLASSES]; /* causes; the sum is its length */
	const struct idle *before;	/* state of the device */
	const struct idle_parts *parts; /* by owner */
};

/* The call of work, as in struct launch. */
struct work_call {
	uint32_t callsite, before;
	uint32_t number;  /* 0: unknown */
	uint32_t took_ns; /* duration of a graph launch, else 0; UINT32_MAX: that or longer */
};

/* Work on a device and the gap before it. */
struct stretch {
	uint32_t device;
	bool is_kernel; /* otherwise a copy or a memset */
	bool is_collective;
	uint64_t start_ns, end_ns;
	uint64_t paused_ns; /* pauses of recording in the device's gaps so far */
	const struct idle_work *work;
	struct stretch_gap gap;
	struct work_call call;
	const struct owner *owner;
	uint32_t place;	 /* index of the owner in the aggregate */
	uint64_t bytes;	 /* of copies and memsets */
	uint64_t ticket; /* of collectives: as in struct work */
};

/*
 * Length of the part of a stretch that is later than all earlier work, which ended at *until_ns.
 * Sets it to the new end.
 */
uint64_t stretch_extends(uint64_t *until_ns, const struct stretch *stretch);

/* Adds the idle time of the gap before upto_ns by cause. */
static inline void stretch_idle_upto(const struct stretch *stretch, uint64_t upto_ns,
				     uint64_t idle_ns[IDLE_CLASSES])
{
	idle_upto(stretch->gap.before, stretch->work, upto_ns, idle_ns);
}

/* Called for each piece of work if idle time was requested. */
struct timeline_listener {
	void (*ran)(void *context, const struct stretch *stretch);
	void (*moved)(void *context, const struct idle_move *move); /* after all work; or NULL */
	void *context;
};

/* Sums of collective kernels. */
struct collective_sums {
	uint64_t count;
	uint64_t gpu_ns;   /* sum of their durations */
	uint64_t alone_ns; /* time in which nothing else ran on the device */
};

/* End of all work of a device so far, and of all work other than collectives. */
struct collective_sweep {
	uint64_t all_until_ns;
	uint64_t other_until_ns;
};

/*
 * Adds work to the sums. Work must come in order of its start. The sums are valid after the
 * device's last work.
 */
void collectives_add(struct collective_sums *sums, struct collective_sweep *sweep,
		     const struct stretch *stretch);

struct timeline {
	struct timeline_listener listener; /* may be zeros */
	bool wants_exclusive;
	bool wants_idle;
	bool is_damaged;     /* work may be missing, so causes of gaps are unknown; may change */
	uint64_t unknown_ns; /* length of these gaps */
	uint64_t paused_ns[TIMELINE_DEVICES_MAX]; /* as in struct stretch */
	struct aggregate *aggregate;
	struct idle_paths *idle_paths; /* receives the idle time */
	struct aggregate unowned; /* owners of work before timeline_set_owner(); without sums */
	const struct pauses *pauses;
	const struct threads *threads;
	struct reorder_buffer reorder;
	uint64_t late_count; /* work that arrived too late to be sorted */
	struct exclusive exclusive[TIMELINE_DEVICES_MAX];
	struct idle idle[TIMELINE_DEVICES_MAX];
	struct collective_sweep sweeps[TIMELINE_DEVICES_MAX];
	struct collective_sums collectives; /* of all devices */
};

/*
 * Computes WEIGHT_GPU_EXCLUSIVE, WEIGHT_GPU_IDLE or both. idle_paths is needed for idle time; it is
 * complete after timeline_finish(). aggregate, threads, pauses and idle_paths must outlive the
 * timeline.
 */
struct timeline *timeline_new(bool wants_exclusive, bool wants_idle, struct aggregate *aggregate,
			      const struct threads *threads, const struct pauses *pauses,
			      struct idle_paths *idle_paths, struct timeline_listener listener);
void timeline_free(struct timeline *timeline);

/* Adds work of a device. owner applies unless timeline_set_owner() is called with the ticket. */
void timeline_add(struct timeline *timeline, uint32_t device, const struct work *work,
		  const struct owner *owner, uint64_t *ticket_out);

/*
 * Set the owner of added work, by its index in the aggregate, and its call (NULL if unknown). Has
 * no effect on work that was already processed.
 */
void timeline_set_owner(struct timeline *timeline, uint64_t ticket, const struct launch *launch,
			uint32_t place);

/*
 * Process the remaining work. Returns how many pieces came too late, or were too many, to be
 * counted.
 */
uint64_t timeline_finish(struct timeline *timeline);

#endif
