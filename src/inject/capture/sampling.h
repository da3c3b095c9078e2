/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --max-overhead: while the tracer costs the program more than it may, only some of the calls that make work get a
 * call stack. Which ones, chance decides for each call by itself, so that no rhythm of the program's meets it; the
 * merge then takes them for all (docs/WEIGHTS.md). Times and kernels are recorded of all calls as ever.
 */
#ifndef XT_INJECT_SAMPLING_H
#define XT_INJECT_SAMPLING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/capture/thread_buffer.h"

#define SAMPLING_SHIFT_MAX 6 /* 1 in 64 */

/* One in 1 << this; 0: all. Set by the writer thread, read at each call. */
extern atomic_uint sampling_shift;

/* Is this one of them? By the owner of the thread buffer; hot path. */
static inline bool sampling_takes(struct thread_buffer *tb, uint32_t shift)
{
	uint32_t x = tb->rng_state; /* Marsaglia's xorshift: never 0 */

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	tb->rng_state = x;
	return x >> (32 - shift) == 0;
}

/* What the program's threads spent in the tracer so far, estimated: rare things as measured, the rest by the
 * calls that were timed. For the writer thread. */
uint64_t sampling_cost_ns(void);

/* For the writer, in each round: sets the rate so that the tracer costs limit_percent of the time of those threads
 * that call CUDA, or less. True if it was changed; then *one_in_out is what it is. */
bool sampling_control(double limit_percent, uint64_t now_ns, uint32_t *one_in_out);

/* For how long it cost more although no fewer stacks can be taken. Writer thread. */
uint64_t sampling_over_limit_ns(void);

#endif
