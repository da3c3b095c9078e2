/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time, and sleeps that the threads of a program may make.
 */
#ifndef XT_INJECT_CLOCK_H
#define XT_INJECT_CLOCK_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log/base/monotonic.h"

/*
 * Waits briefly, in any thread; less if a signal arrives. nanosleep() is a cancellation point:
 * pthread_cancel() could unwind a program's thread in the middle of our work or CUPTI's. Keeps
 * errno; async-signal-safe.
 */
static inline void xt_sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	int saved_errno = errno;

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
	errno = saved_errno;
}

#endif
