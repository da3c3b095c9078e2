/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread timeline: what a thread did until its last recorded call. It was in a call that waits for
 * the GPU, in another call, or in its own code. docs/WEIGHTS.md describes how gpu-idle uses this.
 *
 * Checkpoints store running sums at each change, so the sums of any interval are one subtraction.
 * To bound memory, the older half of the checkpoints can be thinned out. The remaining ones stay
 * exact; time between two checkpoints is interpolated.
 */
#ifndef XT_IDLE_THREAD_TIMELINE_H
#define XT_IDLE_THREAD_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

/* Own code up to this long counts as preparing the next call. */
#define THREAD_BUSY_MAX_NS UINT64_C(1000000)

/* Number of recent call pieces that can still prove to be nested in a later call. */
#define CALL_SPANS_MAX 256

enum thread_state {
	THREAD_IN_SYNC,	       /* in a synchronising call */
	THREAD_IN_COPY,	       /* in a blocking copy */
	THREAD_IN_OWN_CODE,    /* in its own code for longer than THREAD_BUSY_MAX_NS */
	THREAD_STATES_COUNTED, /* the states above have sums; the remaining time is: */
	THREAD_BUSY = THREAD_STATES_COUNTED, /* in another call, or briefly in its own code */
	THREAD_STATES
};

/*
 * State of a thread in a call of this class (enum xt_api_class) and function. Only the name tells
 * whether a copy blocks: the record of the copy comes later, or never.
 */
enum thread_state thread_state_of_call(uint32_t class, const char *name);

struct timeline_checkpoint {
	uint64_t time_ns;
	uint64_t spent_ns[THREAD_STATES_COUNTED]; /* since the first checkpoint */
};

/* A time in one call, without nested calls. */
struct call_span {
	uint64_t from_ns;
	uint64_t until_ns;
	enum thread_state state;
};

/* Zeros are a thread without calls. */
struct thread_timeline {
	struct timeline_checkpoint
		*checkpoints; /* ascending; the first is the thread's first call */
	size_t count;
	size_t capacity;
	struct call_span *spans; /* the latest; a later record may be of a call around them */
	size_t span_count;
	uint64_t last_submit_ns; /* last time it submitted work; 0: never */
};

/*
 * Adds the thread's next call. Calls are added when they return, so nested calls (such as those of
 * a signal handler) come before the call around them. At each moment the thread was in the
 * innermost call. *own_ns is the time of this call without nested ones. If times go backwards
 * otherwise, only the new part counts. Returns 0 or -ENOMEM.
 */
int thread_timeline_add_call(struct thread_timeline *timeline, enum thread_state state,
			     uint64_t enter_ns, uint64_t exit_ns, uint64_t *own_ns);

/* Thin out the older half of the checkpoints and free the memory. */
void thread_timeline_thin(struct thread_timeline *timeline);

/* Drops what is only needed for times before before_ns, if that is most of it. */
void thread_timeline_forget(struct thread_timeline *timeline, uint64_t before_ns);

void thread_timeline_free(struct thread_timeline *timeline);

/*
 * Adds what the thread did in [from_ns, until_ns) to spent_ns; the sum grows by exactly until_ns -
 * from_ns. until_ns must be the start of a call. Own code that began before from_ns is judged by
 * its length after from_ns. Time before the thread's first call is own code.
 */
void thread_timeline_spent(const struct thread_timeline *timeline, uint64_t from_ns,
			   uint64_t until_ns, uint64_t spent_ns[THREAD_STATES]);

/*
 * Returns what the thread did at time_ns, as thread_timeline_spent() counts it in [from_ns,
 * until_ns). If the timeline was thinned out there, returns what it did most.
 */
enum thread_state thread_timeline_at(const struct thread_timeline *timeline, uint64_t from_ns,
				     uint64_t until_ns, uint64_t time_ns);

#endif
