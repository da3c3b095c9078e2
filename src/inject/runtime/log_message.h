/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the injected library to the user: single lines on stderr, only about what keeps it
 * from working. Never on stdout. Not for the hot path.
 *
 * A message is dropped if stderr would block, because the program must not wait for its reader. It
 * is also dropped if descriptor 2 is no longer the file it was when the library was loaded.
 */
#ifndef XT_INJECT_LOG_MESSAGE_H
#define XT_INJECT_LOG_MESSAGE_H

#include <stddef.h>

/* Prints "xtrace: " and the text as one line, in one write. Keeps errno; no cancellation point. */
void log_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * From now on, appends the messages of this thread to `lines`, a string in line_bytes, instead:
 * "; " and the text for each. NULL: to stderr again.
 */
void log_message_collect(char *lines, size_t line_bytes);

/* Prints the text as it is. Async-signal-safe, also on a small stack. */
void log_message_text(const char *text);

/*
 * A debug log of the tracer, for its developers: XTRACE_DEBUG=writer,cupti writes lines of these
 * domains to <log>.debug, beside the log.
 *
 * Only the tracer's own threads and start-up may write there. Callbacks and other code in the
 * program's threads count instead (enum xt_ring_counter), and the writer thread logs the counts.
 * If a domain is off, debug_log() tests one word and returns.
 */
enum debug_domain {
	DEBUG_PROCESS,
	DEBUG_WRITER,
	DEBUG_CUPTI,
	DEBUG_STACK,
	DEBUG_PYTHON,
	DEBUG_NVTX,
	DEBUG_MEMORY,
	DEBUG_DOMAINS
};

/*
 * Enables the domains of a comma-separated list, or `all`. Warns about an unknown domain and names
 * the closest one. NULL or an empty list disables all.
 */
void debug_log_enable(const char *list);

/* Creates <log_path>.debug if a domain is enabled. 0 or -errno; then nothing is logged. */
int debug_log_open(const char *log_path);

/* Writes one line. Keeps errno. Drops the line if it cannot be written. */
void debug_log(enum debug_domain domain, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* In a forked child: closes the parent's file. Async-signal-safe. */
void debug_log_abandon(void);

#endif
