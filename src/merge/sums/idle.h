/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle GPU time: the gaps between the work of a device, cut into pieces by why nothing ran.
 * docs/WEIGHTS.md defines the classes.
 */
#ifndef XT_MERGE_IDLE_H
#define XT_MERGE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/sums/thread_timeline.h"

enum idle_class {
	IDLE_LAUNCH_LATE,
	IDLE_CPU_IN_SYNC,
	IDLE_ON_COPY,
	IDLE_ON_STREAM,
	IDLE_NOT_SUBMITTED,
	IDLE_NOT_STARTED,
	IDLE_CALL_UNKNOWN,
	IDLE_CLASSES
};

/* The leaf of a path. */
extern const char *const idle_labels[IDLE_CLASSES];

/* Work, when it was launched, and what the thread did that launched it. */
struct idle_work {
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t stream;
	bool is_copy;
	bool has_call;	   /* the rest is 0 if not */
	uint64_t enter_ns; /* of the call */
	uint32_t since_ns; /* as struct launch has it */
	const struct thread_timeline *thread;
};

/* Of one device; all zeros is one on which nothing has run yet. */
struct idle {
	bool has_run;
	uint64_t busy_until_ns;
	uint32_t last_stream; /* of the work that ended last */
	bool last_is_copy;
	uint64_t last_enter_ns;			   /* of its call */
	const struct thread_timeline *last_thread; /* NULL: not known */
};

/*
 * Tells of the next work of the device, in the order of its start. What was idle before it is
 * added to pieces_ns (by enum idle_class).
 */
void idle_add(struct idle *idle, const struct idle_work *work, uint64_t pieces_ns[IDLE_CLASSES]);

/* Did the thread of the next work, which ends a gap, ask for other work between what ran last and it? That should
 * have run in the gap. */
bool idle_lacks_work(const struct idle *idle, const struct idle_work *work);

#endif
