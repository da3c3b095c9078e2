/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written by the thread that starts the tracer, before the writer thread exists.
 */
#include "inject/runtime/process_identity.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "inject/runtime/clock.h"

static uint64_t identity[2];

void process_identity_draw(void)
{
	int saved_errno = errno;

	/* Without random numbers, the moment and the pid still differ in most cases. */
	if (getrandom(identity, sizeof(identity), 0) != sizeof(identity)) {
		identity[0] = monotonic_ns() << 20 ^ (uint64_t)getpid();
		identity[1] = xt_clock_ns(CLOCK_REALTIME) ^ (uint64_t)(uintptr_t)&saved_errno << 16;
	}
	errno = saved_errno;
}

void process_identity_text(char out[PROCESS_IDENTITY_BYTES])
{
	snprintf(out, PROCESS_IDENTITY_BYTES, "%016llx%016llx", (unsigned long long)identity[0],
		 (unsigned long long)identity[1]);
}
