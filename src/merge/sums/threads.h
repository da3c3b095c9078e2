/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a log did, and which API functions wait for the GPU. The calls of a thread
 * come in the order in which they returned.
 */
#ifndef XT_MERGE_THREADS_H
#define XT_MERGE_THREADS_H

#include "merge/read/correlate.h"
#include "merge/read/model.h"
#include "merge/sums/thread_timeline.h"

#define THREADS_CHECKPOINTS_MAX                                                                    \
	(1u << 20) /* of all threads together; beyond, old ones are thinned */

struct threads {
	struct thread_timeline
		*timelines; /* by XT_THREAD_ID; 0 is those that the log does not know */
	size_t count;
	size_t checkpoint_count;
	size_t checkpoints_max;
	uint8_t *states; /* enum thread_state by place in the model's apis */
};

/* What a thread is in that calls that API: by its class and name. */
enum thread_state threads_state_of(const struct model *model, const struct api *api);

/* 0 or -ENOMEM; threads_free() in any case. */
int threads_init(struct threads *threads, const struct model *model);
void threads_free(struct threads *threads);

/* Does the CPU wait for the GPU in that API? All of class SYNC, and copies that are not Async. */
static inline bool threads_waits(const struct threads *threads, uint16_t api)
{
	return threads->states[api] != THREAD_BUSY;
}

/* The thread of that id. */
static inline struct thread_timeline *threads_timeline(const struct threads *threads,
						       uint32_t thread)
{
	return &threads->timelines[thread < threads->count ? thread : 0];
}

/* The call asks for work. Returns how long before it its thread did so last, UINT32_MAX at most. */
uint32_t threads_note_submission(struct threads *threads, const struct launch *call);

/* Takes note of a call. *own_ns is its duration less that of calls within it. 0 or -ENOMEM. */
int threads_add_call(struct threads *threads, const struct launch *call, uint64_t exit_ns,
		     uint64_t *own_ns);

#endif
