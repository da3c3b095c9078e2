/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the rows of the log. Writer thread only, unless stated otherwise. */
#ifndef XT_INJECT_RECORD_H
#define XT_INJECT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/unwind/stack_walk.h"
#include "inject/writer/recorder.h"

/* record_run.c: rows about the run itself: the process, its modules and threads, clocks, pauses. */
void record_meta(struct recorder *rec, const char *key, const char *value);
void record_meta_number(struct recorder *rec, const char *key, uint64_t value);
void record_start(struct recorder *rec);   /* META, API and first CLOCK rows */
void record_modules(struct recorder *rec); /* modules loaded or unloaded */
bool record_thread(struct recorder *rec, struct thread_buffer *tb); /* false: out of memory */
void record_clock(struct recorder *rec);
/* Recording was paused or resumed at that time. Not for XT_SWITCH_YIELDED. */
void record_switch(struct recorder *rec, uint64_t time_ns, bool is_on, enum xt_switch_why why);
/* Rows for handoffs of CUPTI (cupti_owner.h). */
void record_handoffs(struct recorder *rec);
void record_devices(struct recorder *rec); /* once the driver has answered */

/*
 * Stores the path of the module's file, shorter than XT_MODULE_PATH_MAX, and returns its length.
 * The program has no name (name_bytes 0). A relative name such as "./plugin.so" depends on the
 * directory at that time, so the path is taken from the kernel. If the module is no longer
 * mapped, the name is kept. Does not keep errno.
 */
size_t module_path(const struct module_image *image, const char *name, size_t name_bytes,
		   char *path);

/* record_calls.c: rows from the rings of threads, and from the activity buffers of CUPTI. */

/*
 * Drains all rings, unless the log cannot be written. Returns the largest share of a ring, in
 * percent, that waits for a flush.
 */
uint32_t record_calls(struct recorder *rec);

/*
 * Ends all open NVTX ranges, because recording stops: their ends will not be recorded. Call it once
 * the rings are drained.
 */
void record_range_ends(struct recorder *rec);

/* Recording starts again: from now on, the ends of ranges that began before are ignored. */
void record_ranges_restart(struct recorder *rec);

/* Turns completed buffers into rows, as long as they can be held. */
void record_activity(struct recorder *rec);

/*
 * Stores the kernel names of unread buffers in the crash buffer, if no buffer was read since the
 * last call.
 */
void prefetch_names(struct recorder *rec);

/* record_account.c: the tracer's account of itself: what it saw, wrote and lost, and its cost. */

/*
 * Writes ACCOUNT rows. True if the calls add up: seen = written + lost. They may not while a thread
 * is in a callback.
 */
bool record_account(struct recorder *rec);

/*
 * ACCOUNT rows of a snapshot, right after a flush: what is not in the log yet has not been seen.
 * Its kernels without a record are explained by kernels_unfinished.
 */
void record_snapshot_account(struct recorder *rec, uint64_t kernels_unfinished);

/* Stores losses outside of rings in the crash buffer, for recovery. */
void record_losses(const struct recorder *rec);

/* The number of calls that returned, including those after the end. Any thread. */
uint64_t record_calls_seen(void);

#endif
