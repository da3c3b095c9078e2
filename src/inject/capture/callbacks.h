/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's callbacks at API calls: where the application's threads meet the tracer.
 */
#ifndef XT_INJECT_CALLBACKS_H
#define XT_INJECT_CALLBACKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/cupti/cupti.h"

/* Whether callbacks record; while it is false they return at once. */
extern atomic_bool callbacks_active;

/* Why calls are left out that are entered now; 0: they are recorded. Nodes of graphs and NVTX are
 * noted all the same. */
enum pause_cause {
	PAUSED_REQUESTED = 1, /* by the user or the program */
	PAUSED_HANDOFF = 2,   /* another tool has CUPTI */
	PAUSED_SIZE = 4,      /* the log has its size: for good */
	PAUSED_SHUTDOWN =
		8, /* the process ends: for good; what is left out for that alone is lost */
};
extern atomic_uint callbacks_paused;	  /* enum pause_cause, several of them */
extern atomic_bool callbacks_were_paused; /* now or ever: set before a pause begins */

/* Any thread. True if that is what has recording pause, or go on. */
static inline bool recording_pause(enum pause_cause cause)
{
	atomic_store(&callbacks_were_paused, true);
	return atomic_fetch_or(&callbacks_paused, cause) == 0;
}

static inline bool recording_resume(enum pause_cause cause)
{
	return atomic_fetch_and(&callbacks_paused, ~(unsigned)cause) == cause;
}

/* Calls that were not recorded because the thread was inside a callback already. */
extern atomic_uint_fast64_t callbacks_reentered;

/* Recording has ended with the log: set before callbacks_active is not. Launches, copies and
 * sets that return from then on. */
extern atomic_bool callbacks_have_ended;
extern atomic_uint_fast64_t callbacks_after_end;

/* How many GPU modules have been unloaded: names of kernels known before are not to be believed. */
extern atomic_uint_fast64_t callbacks_module_unloads;

/* What is given to cuptiSubscribe(): saves the caller's registers and goes on in C. */
void callback_entry(void *userdata, uint32_t domain, uint32_t cbid, const void *cbdata);

#endif
