/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of all devices in the order of its start: for the weights that depend on what else ran,
 * gpu-exclusive and gpu-idle.
 */
#ifndef XT_MERGE_TIMELINE_H
#define XT_MERGE_TIMELINE_H

#include "merge/read/correlate.h"
#include "merge/read/reorder_buffer.h"
#include "merge/read/pauses.h"
#include "merge/sums/exclusive.h"
#include "merge/sums/idle.h"
#include "merge/sums/threads.h"
#include "merge/sums/aggregate.h"

#define TIMELINE_DEVICES_MAX 256 /* those with larger numbers are taken for one */

/* Work as a device ran it, and the gap before it. */
struct stretch {
	uint32_t device;
	bool is_kernel; /* else a copy or a set */
	bool is_collective;
	bool has_gap; /* the device was idle from gap_from_ns to start_ns */
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t gap_from_ns;
	uint64_t idle_ns[IDLE_CLASSES];	    /* why, in all gap_from_ns to start_ns */
	uint32_t stream;		    /* XT_STREAM_ID */
	uint32_t callsite, before, took_ns; /* of its call, as struct launch has it */
	bool has_call;
	uint64_t enter_ns; /* of the call */
	const struct owner *owner;
};

/* Told of each, if idle time is asked for. */
struct timeline_listener {
	void (*ran)(void *context, const struct stretch *stretch);
	void *context;
};

/* Kernels that are collectives. */
struct collective_sums {
	uint64_t count;
	uint64_t gpu_ns;   /* the sum of their durations */
	uint64_t alone_ns; /* nothing else ran on the device */
};

/* How long work of a device ran, told in the order of its start: all of it, and all but collectives. */
struct collective_sweep {
	uint64_t all_until_ns;
	uint64_t other_until_ns;
};

/* Adds a stretch to the sums; they are right when all of the device's work was told. */
void collectives_add(struct collective_sums *sums, struct collective_sweep *sweep,
		     const struct stretch *stretch);

struct timeline {
	struct timeline_listener listener; /* may be all zeros */
	bool wants_exclusive;
	bool wants_idle;
	bool is_damaged; /* work may be missing: gaps in which it should have run are not known; may be set meanwhile */
	uint64_t unknown_ns; /* these gaps */
	struct aggregate *aggregate;
	struct aggregate unowned; /* owners of work as long as nothing else is said; no sums */
	const struct pauses *pauses;
	const struct threads *threads;
	struct reorder_buffer reorder;
	struct exclusive exclusive[TIMELINE_DEVICES_MAX];
	struct idle idle[TIMELINE_DEVICES_MAX];
	struct collective_sweep sweeps[TIMELINE_DEVICES_MAX];
	struct collective_sums collectives; /* of all devices */
	int error;			    /* -ENOMEM, once memory has run out */
};

/* Works out WEIGHT_GPU_EXCLUSIVE, WEIGHT_GPU_IDLE or both. totals, threads and pauses must outlive
 * the timeline. NULL if memory ran out. */
struct timeline *timeline_new(bool wants_exclusive, bool wants_idle, struct aggregate *aggregate,
			      const struct threads *threads, const struct pauses *pauses,
			      struct timeline_listener listener);
void timeline_free(struct timeline *timeline);

/*
 * Takes work of a device (any number). owner is whom it belongs to as long as nothing else is
 * said; *ticket_out is for timeline_set_owner().
 */
void timeline_add(struct timeline *timeline, uint32_t device, const struct work *work,
		  const struct owner *owner, uint64_t *ticket_out);

/* Whom that work belongs to is known, by its place in totals, and the call behind it (NULL: that
 * will not be). Too late is no harm. */
void timeline_set_owner(struct timeline *timeline, uint64_t ticket, const struct launch *launch,
			uint32_t place);

/* No more will come. Returns how much work came too late or was too much to be taken into account. */
uint64_t timeline_finish(struct timeline *timeline);

#endif
