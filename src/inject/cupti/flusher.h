/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flusher thread: asks CUPTI for finished records every 50 ms, and the driver and CUPTI for
 * what else is to be known. It is the only thread of the tracer that may hang in a call of theirs.
 */
#ifndef XT_INJECT_FLUSHER_H
#define XT_INJECT_FLUSHER_H

#include <stdbool.h>
#include <stdint.h>

/* Flushes from now on; before, CUPTI may not be set up. */
void flusher_allow(void);

/* On the thread itself: asks CUPTI for its records; flag: enum xt_cupti_flush. */
void flusher_flush(uint32_t flag);

/* Has the thread do something that may hang; waits for it at most so long. False if it did not get
 * done in that time, or never will be. One caller at a time. */
bool flusher_run(void (*work)(void), uint64_t patience_ns);

/* For the thread itself: does the requested work; whether to flush or to end; says that it ended. */
void flusher_do_work(void);
bool flusher_is_allowed(void);
bool flusher_is_stopping(void);
void flusher_end(void);

/* Asks the thread to end. */
void flusher_stop(void);

/* CUPTI has given out all it had, or was never allowed to be asked. */
bool flusher_is_done(void);

/* CPU time of the thread, as of its last flush. */
uint64_t flusher_cpu_ns(void);

/* Records that CUPTI says it dropped, so far. */
uint64_t flusher_dropped_records(void);

#endif
