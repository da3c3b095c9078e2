/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flusher thread asks CUPTI for finished records every 50 ms, unless graph_level_may_flush()
 * says otherwise, and the driver for other data. It is the tracer's only thread that may hang in
 * their calls.
 */
#ifndef XT_INJECT_FLUSHER_H
#define XT_INJECT_FLUSHER_H

#include <stdbool.h>
#include <stdint.h>

/* Allows flushes; before this, CUPTI may not be set up. */
void flusher_allow(void);

/* Flusher thread only: flushes CUPTI's records. flag: enum xt_cupti_flush. */
void flusher_flush(uint32_t flag);

/*
 * Runs work() on the flusher thread and waits until it is done. False after a timeout, or if the
 * thread has ended. One caller at a time.
 */
bool flusher_run(void (*work)(void), uint64_t timeout_ns);

/* Flusher thread only: runs requested work, reads its state, marks its end. */
void flusher_do_work(void);
bool flusher_is_allowed(void);
bool flusher_is_stopping(void);
void flusher_mark_done(void);

/* Asks the thread to flush once more and end. */
void flusher_stop(void);

/* Whether the last flush is done. */
bool flusher_is_done(void);

/* Flushes of CUPTI that have ended. */
uint64_t flusher_flush_count(void);

/* CPU time of the thread at its last flush. */
uint64_t flusher_cpu_ns(void);

/* Records that CUPTI reports as dropped, so far. */
uint64_t flusher_dropped_records(void);

#endif
