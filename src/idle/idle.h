/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle GPU time: the gaps between the work of a device, divided by cause. docs/WEIGHTS.md defines
 * the classes.
 *
 * The timeline of a thread tells what it did until its last recorded call: it was in a call that
 * waits for the GPU, in another call, or in its own code. Checkpoints store running sums at each
 * change, so the sums of any interval are one subtraction. To bound memory, the older half of the
 * checkpoints can be thinned out. The remaining ones stay exact; time between two checkpoints is
 * interpolated.
 */
#ifndef XT_IDLE_IDLE_H
#define XT_IDLE_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Own code up to this long counts as preparing the next call. */
#define THREAD_BUSY_MAX_NS UINT64_C(1000000)

/* Number of recent call pieces that can still prove to be nested in a later call. */
#define CALL_SPANS_MAX 256

enum thread_state {
	THREAD_IN_SYNC,	       /* in a synchronising call */
	THREAD_IN_COPY,	       /* in a blocking copy */
	THREAD_IN_ALLOCATION,  /* in a call that allocates or frees memory */
	THREAD_IN_LOADING,     /* in a call that loads or unloads code */
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

/* True if the CPU waits for the GPU in this state. */
static inline bool thread_state_waits(enum thread_state state)
{
	return state == THREAD_IN_SYNC || state == THREAD_IN_COPY;
}

struct timeline_checkpoint {
	uint64_t time_ns;
	uint64_t spent_ns[THREAD_STATES_COUNTED]; /* since the first checkpoint */
	uint32_t call; /* of the time before it, as in struct call_span; 0: none */
};

/* A call, or a time in one call without nested calls. */
struct call_span {
	uint64_t from_ns;
	uint64_t until_ns;
	enum thread_state state;
	uint32_t call; /* any number that identifies the call; 0: none */
};

/* Zeros are a thread without calls. */
struct thread_timeline {
	struct timeline_checkpoint *checkpoints; /* ascending, from the thread's first call on */
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
int thread_timeline_add_call(struct thread_timeline *timeline, const struct call_span *call,
			     uint64_t *own_ns);

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
 * The same for the part of [from_ns, until_ns) before upto_ns: own code is judged by its length in
 * the whole interval, so the sums of a part never exceed those of the whole.
 */
void thread_timeline_spent_upto(const struct thread_timeline *timeline, uint64_t from_ns,
				uint64_t until_ns, uint64_t upto_ns,
				uint64_t spent_ns[THREAD_STATES]);

/*
 * Returns what the thread did at time_ns, as thread_timeline_spent() counts it in [from_ns,
 * until_ns). If the timeline was thinned out there, returns what it did most.
 */
enum thread_state thread_timeline_at(const struct thread_timeline *timeline, uint64_t from_ns,
				     uint64_t until_ns, uint64_t time_ns);

/* Returns the call with the longest time in a state within [from_ns, until_ns), or 0. */
uint32_t thread_timeline_longest(const struct thread_timeline *timeline, enum thread_state state,
				 uint64_t from_ns, uint64_t until_ns);

/* X(name, column of SQLite, text) for each class. */
#define IDLE_KNOWN_CAUSES(X)                                                                       \
	X(LAUNCH_LATE, launch_late_ns, "launch late (CPU busy)")                                   \
	X(CPU_IN_SYNC, cpu_in_sync_ns, "CPU blocked in sync")                                      \
	X(ALLOCATING, allocating_ns, "allocating memory")                                          \
	X(LOADING, loading_ns, "loading code")                                                     \
	X(ON_COPY, on_copy_ns, "waiting on a copy")                                                \
	X(ON_STREAM, on_stream_ns, "waiting for another stream")                                   \
	X(NOT_SUBMITTED, not_submitted_ns, "nothing submitted")                                    \
	X(NOT_STARTED, not_started_ns, "submitted, not started")
#define IDLE_UNKNOWN   "call unknown"
#define IDLE_CAUSES(X) IDLE_KNOWN_CAUSES(X) X(CALL_UNKNOWN, call_unknown_ns, IDLE_UNKNOWN)

/* The leaf frame of a class, from its text. */
#define IDLE_LABEL(text) "[idle: " text "]"

#define IDLE_ENUM(name, column, text) IDLE_##name,
enum idle_class { IDLE_CAUSES(IDLE_ENUM) IDLE_CLASSES };
#undef IDLE_ENUM

/*
 * Owner.what of idle time: its class, and the path of the CPU code that the GPU waited for
 * (idle_paths.h).
 */
#define IDLE_CLASS_BITS	       4
#define IDLE_WHAT(class, path) ((uint32_t)(class) | (uint32_t)(path) << IDLE_CLASS_BITS)
#define IDLE_WHAT_CLASS(what)  ((enum idle_class)((what) & ((1u << IDLE_CLASS_BITS) - 1)))
#define IDLE_WHAT_PATH(what)   ((what) >> IDLE_CLASS_BITS)
_Static_assert(IDLE_CLASSES <= 1 << IDLE_CLASS_BITS, "a class fits its bits");

/* The class of idle time in which the launching thread was in this state. */
extern const enum idle_class idle_class_of_thread[THREAD_STATES];

/* Of each class: IDLE_LABEL() and the text in it. */
extern const char *const idle_labels[IDLE_CLASSES], *const idle_causes[IDLE_CLASSES];

/* The classes in the order in which they usually occur in a gap. The late launch comes last. */
extern const enum idle_class idle_order[IDLE_CLASSES];

/* Work of a device with its launch and launching thread. */
struct idle_work {
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t stream;
	bool is_copy;
	bool has_call;	   /* if false, the fields below are 0 */
	uint64_t enter_ns; /* start of the call */
	uint32_t since_ns; /* since the thread's previous submission, as in struct launch */
	const struct thread_timeline *thread;
};

/* State of one device. Zeros are a device that has not run anything. */
struct idle {
	bool has_run;
	uint64_t busy_until_ns;
	uint32_t last_stream; /* stream of the work that ended last */
	bool last_is_copy;
	uint64_t last_enter_ns;			   /* start of its call */
	const struct thread_timeline *last_thread; /* its thread; NULL: unknown */
};

/*
 * Adds the next work of the device, in order of start. Adds the idle time before it to pieces_ns,
 * indexed by enum idle_class.
 */
void idle_add(struct idle *idle, const struct idle_work *work, uint64_t pieces_ns[IDLE_CLASSES]);

/*
 * Adds the part of the idle time before upto_ns. idle: before idle_add() of the work, which ends
 * the gap.
 */
void idle_upto(const struct idle *idle, const struct idle_work *work, uint64_t upto_ns,
	       uint64_t pieces_ns[IDLE_CLASSES]);

/*
 * True if work seems to be missing from the gap before this work. Its thread submitted other work
 * in between, which should have run in the gap.
 */
bool idle_lacks_work(const struct idle *idle, const struct idle_work *work);

#endif
