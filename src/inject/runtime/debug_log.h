/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A debug log of the tracer, for its developers: XTRACE_DEBUG=writer,cupti writes lines of these
 * domains to <log>.debug, beside the log.
 *
 * Only the tracer's own threads and start-up may write here. Callbacks and other code in the
 * program's threads count instead (enum xt_ring_counter), and the writer thread logs the counts.
 * If a domain is off, debug_log() tests one word and returns.
 */
#ifndef XT_INJECT_DEBUG_LOG_H
#define XT_INJECT_DEBUG_LOG_H

#include <stdbool.h>

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

/* Whether lines of the domain are written. */
bool debug_log_is_on(enum debug_domain domain);

/* In a forked child: closes the parent's file. Async-signal-safe. */
void debug_log_abandon(void);

#endif
