/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads several logs in parallel if there are processors for it.
 *
 * Each worker loads the model of a log, joins its events and sums them, in a reading of its own.
 * Only the main thread uses what all logs share: the tree of paths, names and exporters. It takes
 * the readings in the order of the logs, so outputs do not depend on timing. At most one log per
 * worker is read ahead, which bounds the memory. If --jobs is at least twice the number of logs,
 * each worker has helper threads (read/prefetch.c).
 *
 * Logs are read one after another in two cases. Outputs of single events need all names before the
 * first event. Selections need the tree of paths while reading.
 */
#ifndef XT_MERGE_WORKER_POOL_H
#define XT_MERGE_WORKER_POOL_H

#include <stddef.h>

struct debug_search;
struct inputs;
struct reading;
struct report;
struct run;
struct sink;

struct worker_pool;

/* Returns the number of threads that may read logs: --jobs, or one per processor. */
size_t jobs_allowed(const struct run *run);

/* Returns NULL if logs must be read one after another. */
struct worker_pool *worker_pool_start(struct run *run, struct sink *sinks, size_t sink_count);

/*
 * Waits for the log with that index. Call it for all logs in order. Returns its reading, valid
 * until worker_pool_release(), and adds its counters to the run. If it failed, the reading's error
 * is set. Returns NULL if the log could not be opened, or if the caller must read it.
 */
struct reading *worker_pool_wait(struct worker_pool *pool, size_t index);
void worker_pool_release(struct worker_pool *pool, size_t index);

/* Stops the workers, at the end or before. Accepts NULL. */
void worker_pool_stop(struct worker_pool *pool);

/*
 * Calls embed_symbols() for each log, in parallel. The workers share open modules, so each binary
 * is read once, however many processes used it. worker_count 0: one per processor. Reports errors
 * in the order of the logs. Returns 0 or -errno.
 */
int embed_all(const struct inputs *inputs, const char *torch_trace, size_t worker_count,
	      struct debug_search *search, struct report *report);

#endif
