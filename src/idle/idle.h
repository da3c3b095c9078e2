/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle GPU time: the gaps between the work of a device, divided by cause. docs/WEIGHTS.md defines
 * the classes.
 */
#ifndef XT_IDLE_IDLE_H
#define XT_IDLE_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "idle/thread_timeline.h"

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

/*
 * Owner.what of idle time: its class, and the path of the CPU code that the GPU waited for
 * (idle_paths.h).
 */
#define IDLE_CLASS_BITS	       3
#define IDLE_WHAT(class, path) ((uint32_t)(class) | (uint32_t)(path) << IDLE_CLASS_BITS)
#define IDLE_WHAT_CLASS(what)  ((enum idle_class)((what) & ((1u << IDLE_CLASS_BITS) - 1)))
#define IDLE_WHAT_PATH(what)   ((what) >> IDLE_CLASS_BITS)
_Static_assert(IDLE_CLASSES <= 1 << IDLE_CLASS_BITS, "a class fits its bits");

/* The class of idle time in which the launching thread was in this state. */
extern const enum idle_class idle_class_of_thread[THREAD_STATES];

/* Leaf frame of each class. */
extern const char *const idle_labels[IDLE_CLASSES];

/* "launch late (CPU busy)" as text[0] up to text[*length - 1]. */
const char *idle_class_text(enum idle_class class, size_t *length);

/* The same as a string. The caller frees it. NULL if out of memory. */
char *idle_class_name(enum idle_class class);

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
 * True if work seems to be missing from the gap before this work. Its thread submitted other work
 * in between, which should have run in the gap.
 */
bool idle_lacks_work(const struct idle *idle, const struct idle_work *work);

#endif
