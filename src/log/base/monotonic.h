/* SPDX-License-Identifier: Apache-2.0 */
/* The time. Any thread; no system call if the vDSO provides the clock. */
#ifndef XT_LOG_MONOTONIC_H
#define XT_LOG_MONOTONIC_H

#include <stdint.h>
#include <time.h>

static inline uint64_t xt_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The clock of a log, for host events and, through CUPTI's timestamp callback, for GPU events. */
static inline uint64_t monotonic_ns(void)
{
	return xt_clock_ns(CLOCK_MONOTONIC);
}

/* Since 1970. The same clock as CUPTI's default, which cannot be restored once replaced. */
static inline uint64_t realtime_ns(void)
{
	return xt_clock_ns(CLOCK_REALTIME);
}

/* Sleeps for less than a second, or until a signal. Not for the threads of a traced program. */
static inline void nap_ns(uint32_t ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

#endif
