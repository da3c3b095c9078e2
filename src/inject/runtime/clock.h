/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of a log: monotonic nanoseconds, for host events and, through CUPTI's timestamp
 * callback, for GPU events. Any thread; no system call if the vDSO provides the clock.
 */
#ifndef XT_INJECT_CLOCK_H
#define XT_INJECT_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t xt_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline uint64_t monotonic_ns(void)
{
	return xt_clock_ns(CLOCK_MONOTONIC);
}

/* The same clock as CUPTI's default, which cannot be restored once replaced. */
static inline uint64_t realtime_ns(void)
{
	return xt_clock_ns(CLOCK_REALTIME);
}

#endif
