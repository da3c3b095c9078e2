/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether recording is paused, and why. Any thread may pause or resume it.
 */
#ifndef XT_INJECT_RECORDING_STATE_H
#define XT_INJECT_RECORDING_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Why calls that start now are not recorded; 0: they are recorded. Graph nodes are always recorded,
 * and NVTX events except while recording is stopped.
 */
enum pause_cause {
	PAUSED_REQUESTED = 1, /* by the user or the program; CUPTI stays enabled */
	PAUSED_HANDOFF = 2,   /* another tool uses CUPTI */
	PAUSED_SIZE = 4,      /* the log has reached --max-size; permanent */
	PAUSED_SHUTDOWN =
		8, /* the process ends; permanent. A call dropped for this cause alone counts as lost */
	PAUSED_STOPPED = 16,  /* by the user; CUPTI is released if that is safe */
	PAUSED_CHANGING = 32, /* for a moment: GPU work will not be recorded any more */
};
__attribute__((
	visibility("hidden"))) extern atomic_uint recording_paused; /* bits of enum pause_cause */
__attribute__((visibility("hidden"))) extern atomic_bool
	recording_was_paused; /* set before the first pause, never cleared */

/* Any thread. True if this call changed whether recording is paused. */
static inline bool recording_pause(enum pause_cause cause)
{
	atomic_store(&recording_was_paused, true);
	return atomic_fetch_or(&recording_paused, cause) == 0;
}

/* causes: one or several */
static inline bool recording_resume(unsigned causes)
{
	unsigned before = atomic_fetch_and(&recording_paused, ~causes);

	return before && !(before & ~causes);
}

#endif
