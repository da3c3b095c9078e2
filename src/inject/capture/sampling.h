/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --max-overhead: if the tracer costs more than the limit, only some calls that create work get a
 * call stack. Each call is chosen at random, so that the choice does not follow a rhythm of the
 * program; the merge weights sampled stacks accordingly (docs/internals/ATTRIBUTION.md). Times and
 * kernels of all calls are recorded.
 */
#ifndef XT_INJECT_SAMPLING_H
#define XT_INJECT_SAMPLING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/capture/thread_buffer.h"
#include "inject/runtime/hot_state.h"

#define SAMPLING_SHIFT_MAX 6 /* 1 in 64 */

/* One call in 1 << this gets a stack; 0: all. Set by the writer thread, read at each call. */
HOT_EXTERN atomic_uint sampling_shift;

/* Whether this call gets a stack. Owner of the thread buffer only; hot path. */
static inline bool sampling_takes(struct thread_buffer *tb, uint32_t shift)
{
	uint32_t x = tb->rng_state; /* Marsaglia's xorshift; never 0 */

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	tb->rng_state = x;
	return x >> (32 - shift) == 0;
}

/*
 * Estimated time the program's threads spent in the tracer: cold paths as measured, other calls by
 * the timed ones. Writer thread.
 */
uint64_t sampling_cost_ns(void);

/*
 * Writer thread, each round: adjusts the rate so that the tracer costs at most limit_percent of the
 * time of threads that call CUDA. True if it changed; *one_in_out is the new rate.
 */
bool sampling_control(double limit_percent, uint64_t now_ns, uint32_t *one_in_out);

/* For how long the cost exceeded the limit at the lowest rate. Writer thread. */
uint64_t sampling_over_limit_ns(void);

#endif
