/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines of the threads of a log, and which API functions wait for the GPU. The calls of a
 * thread come in the order in which they returned.
 */
#ifndef XT_MERGE_THREADS_H
#define XT_MERGE_THREADS_H

#include "idle/idle.h"
#include "merge/read/correlate.h"
#include "merge/read/model.h"

#define THREADS_CHECKPOINTS_MAX                                                                    \
	(1u << 20) /* of all threads together; beyond it, the older half is thinned out */

struct threads {
	struct thread_timeline *timelines; /* by XT_THREAD_ID; entry 0 is for unknown threads */
	size_t count;
	size_t checkpoint_count;
	size_t checkpoints_max;
	uint8_t *states; /* enum thread_state by index in the model's apis */
};

/* State of a thread in a call of this API, judged by its class and name. */
enum thread_state threads_state_of(const struct model *model, const struct api *api);

/* Call threads_free() in any case. */
void threads_init(struct threads *threads, const struct model *model);
void threads_free(struct threads *threads);

/* True if the CPU waits for the GPU in this API: class SYNC, and copies that are not Async. */
static inline bool threads_waits(const struct threads *threads, uint16_t api)
{
	return threads->states[api] != THREAD_BUSY;
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

/* Adds a call. *own_ns is its duration without nested calls. */
void threads_add_call(struct threads *threads, const struct launch *call, uint64_t exit_ns,
		      uint64_t *own_ns);

#endif
