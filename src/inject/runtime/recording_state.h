/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether recording is paused, and why. Any thread may pause or resume it.
 */
#ifndef XT_INJECT_RECORDING_STATE_H
#define XT_INJECT_RECORDING_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

/* Why calls are left out that are entered now; 0: they are recorded. Nodes of graphs and NVTX are
 * noted all the same. */
enum pause_cause {
	PAUSED_REQUESTED = 1, /* by the user or the program */
	PAUSED_HANDOFF = 2,   /* another tool has CUPTI */
	PAUSED_SIZE = 4,      /* the log has its size: for good */
	PAUSED_SHUTDOWN =
		8, /* the process ends: for good; what is left out for that alone is lost */
};
__attribute__((visibility(
	"hidden"))) extern atomic_uint recording_paused; /* enum pause_cause, several of them */
__attribute__((visibility("hidden"))) extern atomic_bool
	recording_was_paused; /* now or ever: set before a pause begins */

/* Any thread. True if that is what has recording pause, or go on. */
static inline bool recording_pause(enum pause_cause cause)
{
	atomic_store(&recording_was_paused, true);
	return atomic_fetch_or(&recording_paused, cause) == 0;
}

static inline bool recording_resume(enum pause_cause cause)
{
	return atomic_fetch_and(&recording_paused, ~(unsigned)cause) == cause;
}

#endif
