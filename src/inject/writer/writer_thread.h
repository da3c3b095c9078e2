/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and ends the tracer's two threads. This is the writer, which moves committed records to
 * the log. See cupti_owner.h for the other one.
 */
#ifndef XT_INJECT_WRITER_THREAD_H
#define XT_INJECT_WRITER_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "log/base/number_format.h"

struct xt_writer;

/*
 * Starts both threads; the writer then owns `log`, whose size the user may have limited. 0 or
 * -errno; after an error nothing runs and the caller owns `log`.
 */
int writer_thread_start(struct xt_writer *log, uint64_t start_ns,
			const struct xt_size_bound *size_limit);

/* Whether the threads were started, even if they have ended since. */
bool writer_thread_has_started(void);

/* Calls this function on the writer thread at the end, after the last write to the log. */
void writer_thread_at_end(void (*function)(void));

/*
 * Flushes CUPTI, writes everything and closes the log; waits at most timeout_ns. Returns 0, or why
 * the log is not closed; the rest is then in the crash buffer:
 * - -ETIMEDOUT: CUPTI or the disk takes longer.
 * - -EIO: the log cannot be written.
 * - -EDEADLK: a signal handler ends the process while its thread holds the loader's lock.
 *
 * Async-signal-safe. May be called again, by any thread.
 */
int writer_thread_finish(uint64_t timeout_ns);

/*
 * After the log is closed: waits until late calls are counted in it, at most 0.25 s. Not on the
 * writer thread. Async-signal-safe.
 */
void writer_thread_wait_late_calls(void);

/*
 * Whether the calling thread belongs to the writer's process and is neither the writer nor the
 * flusher. False in a child of vfork(), in any namespace. Async-signal-safe.
 */
bool writer_thread_is_other_thread(void);

/* In a forked child: closes the parent's log file. Async-signal-safe. */
void writer_thread_abandon(void);

#endif
