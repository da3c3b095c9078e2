/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process that goes along call paths on request, tells the stack that libgcc finds, and
 * blocks or computes at their end.
 */
#ifndef XT_TESTS_SAMPLER_TRACED_CHILD_H
#define XT_TESTS_SAMPLER_TRACED_CHILD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/perf_events.h"
#include "sampler/remote_unwind.h"

enum child_end {
	END_FUTEX,
	END_NANOSLEEP,
	END_READ,
	END_CONDITION,
	END_OWN_SYSCALL, /* in a frame of the variant */
	END_LEAF,	 /* called by a function of the variant, and without a frame */
	END_SPIN,	 /* for CHILD_SPIN_NS */
	END_COUNT
};

#define CHILD_SPIN_NS	 40000000u
#define CHILD_FRAMES_MAX 256

struct traced_child {
	pid_t pid;
	/* Shared memory. */
	struct child_request {
		_Atomic uint32_t request, answer; /* counts */
		size_t variant;			  /* index of CALL_PATH_VARIANTS */
		unsigned seed;
		enum child_end end;
		pid_t tid;
		uint64_t expected[CHILD_FRAMES_MAX]; /* the first is in the blocking function */
		uint32_t expected_count;
		uint64_t stack_start, stack_bytes; /* of the thread, when the path ended */
		uint64_t spin_start_ns, spin_end_ns;
		uint32_t word;
		pthread_mutex_t mutex;
		pthread_cond_t condition;
		bool is_released; /* guarded by mutex */
		int pipe[2];
	} * shared;
};

extern const char *const child_variant_names[];
extern const size_t child_variant_count;

/* The child waits until child_go(). */
void child_start(struct traced_child *child);
void child_stop(struct traced_child *child);

/* Returns when the child has reached the end of the path: blocked, or done with computing. */
void child_go(struct traced_child *child, size_t variant, unsigned seed, enum child_end end);
void child_release(struct traced_child *child);

/* Reads the registers of the blocked thread from /proc. */
void child_registers(const struct traced_child *child, struct thread_registers *registers);

/*
 * Fails the test if a frame is wrong. Returns whether the walk is complete. inner_max: how many
 * frames may be inside of those that libgcc knows.
 */
bool child_check_stack(const struct traced_child *child, const struct native_stack *stack,
		       uint32_t inner_max);

#endif
