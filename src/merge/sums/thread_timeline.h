/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one thread did at each moment up to its last recorded call: whether it was in a call that
 * waits for the GPU, in another call, or in code of its own. docs/WEIGHTS.md says what is made of
 * it (gpu-idle).
 *
 * Kept are the moments at which that changed, with what was spent in each until then, so that any
 * stretch of the past is one subtraction. To bound memory, the older half of the moments can be
 * thinned out: what is left stays exact, and within what lies between two of them the time is
 * taken to be spread evenly.
 */
#ifndef XT_MERGE_THREAD_TIMELINE_H
#define XT_MERGE_THREAD_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

/* A thread whose own code takes this long at most was on its way to the next call. */
#define THREAD_BUSY_MAX_NS UINT64_C(1000000)

/* So many of the last pieces of calls can be within one; what is before them counts as its own. */
#define CALL_SPANS_MAX 256

enum thread_state {
	THREAD_IN_SYNC,	       /* in a call that synchronises */
	THREAD_IN_COPY,	       /* in a copy that blocks */
	THREAD_IN_OWN_CODE,    /* in code of its own for longer than THREAD_BUSY_MAX_NS */
	THREAD_STATES_COUNTED, /* of these there are sums; the rest of the time is: */
	THREAD_BUSY =
		THREAD_STATES_COUNTED, /* in another call, or in code of its own for a short time */
	THREAD_STATES
};

struct timeline_checkpoint {
	uint64_t time_ns;
	uint64_t spent_ns[THREAD_STATES_COUNTED]; /* from the first moment on */
};

/* A time that the thread spent in one call, and in none within that. */
struct call_span {
	uint64_t from_ns;
	uint64_t until_ns;
	enum thread_state state;
};

/* All zeros is a thread that has made no call. */
struct thread_timeline {
	struct timeline_checkpoint
		*checkpoints; /* the first is the thread's first call; ascending */
	size_t count;
	size_t capacity;
	struct call_span *spans; /* the last ones: a call may prove to be around them */
	size_t span_count;
	uint64_t last_submit_ns; /* when it was last called for work; 0: never */
};

/*
 * The thread's next call: what it did from the last one on is known up to exit_ns. A call comes
 * after those that were made within it, in a signal handler for one: at each moment the thread was
 * in the innermost; *own_ns is how long it was in this one. Of times that go back otherwise, only
 * what is new counts. 0 or -ENOMEM.
 */
int thread_timeline_add_call(struct thread_timeline *timeline, enum thread_state state,
			     uint64_t enter_ns, uint64_t exit_ns, uint64_t *own_ns);

/* Thins out the older half of the moments and gives the memory back. */
void thread_timeline_thin(struct thread_timeline *timeline);
void thread_timeline_free(struct thread_timeline *timeline);

/*
 * Adds what the thread did in [from_ns, until_ns) to spent_ns, so that the sum grows by
 * until_ns - from_ns exactly. until_ns is when a call was entered. Code of its own that began
 * before from_ns is as long as what is behind that; before its first call a thread is in such.
 */
void thread_timeline_spent(const struct thread_timeline *timeline, uint64_t from_ns,
			   uint64_t until_ns, uint64_t spent_ns[THREAD_STATES]);

#endif
