/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer's own two threads: the writer, which takes what the others committed to the log, and
 * the flusher, which asks CUPTI for finished records and may hang in it without harm.
 */
#ifndef XT_INJECT_WRITER_THREAD_H
#define XT_INJECT_WRITER_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "log/base/size_text.h"

struct xt_writer;

/* What recording may cost. */
struct writer_limits {
	struct xt_size_bound size; /* of the log */
	double overhead_percent;   /* of the time of the program's threads; 0: any */
};

/* Starts both threads; the writer then owns `log`, and keeps within the bounds. 0 or -errno (nothing runs then, and the caller
 * keeps the log). */
int writer_thread_start(struct xt_writer *log, uint64_t start_ns,
			const struct writer_limits *limits);

/* From now on CUPTI is asked for its records every 50 ms; before, it may not be set up. */
void writer_thread_allow_flush(void);

/*
 * Has CUPTI flushed, everything written and the log closed; waits for that at most timeout_ns.
 * 0, or why the log is not closed, so that what is missing stays in the crash buffer:
 * -ETIMEDOUT  CUPTI or the disk takes longer,
 * -EIO        the log cannot be written,
 * -EDEADLK    this thread holds the loader's lock, and a signal handler in it ends the process.
 * Async-signal-safe; may be called again, by any thread.
 */
int writer_thread_finish(uint64_t timeout_ns);

/* Once the log is closed: the calls that have returned since are counted in it when this returns, a quarter of a
 * second later at most. Not by the writer thread. Async-signal-safe. */
void writer_thread_settle(void);

/* Whether the calling thread is of the same process as the writer's, and neither the writer's nor the
 * flusher's. Not so in a child of vfork(), whichever namespace it is in. Async-signal-safe. */
bool writer_thread_is_other_thread(void);

/* In a forked child: closes the parent's log file. Async-signal-safe. */
void writer_thread_abandon(void);

#endif
