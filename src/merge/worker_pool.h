/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several logs read at the same time, where there are processors for them.
 *
 * Each worker loads a log's model and joins and adds up its events, into a reading of its own. What
 * all logs share (the tree of paths, names, what exporters write) is the main thread's alone, which
 * takes the readings in the order of the logs: so what is written does not depend on who was done
 * first. No more logs are begun than there are workers beyond the one whose turn it is, which bounds
 * the memory.
 *
 * Outputs that are told of events as they come need all of a log's names before its first event, and
 * a selection looks into the tree of paths: with these, logs are read one after another.
 */
#ifndef XT_MERGE_WORKER_POOL_H
#define XT_MERGE_WORKER_POOL_H

#include "merge/reading.h"

#define WORKERS_MAX 8

struct worker_pool;

/* How many threads the process may run at once. */
unsigned processors(void);

/* *pool_out is NULL where logs are to be read one after another. 0 or -ENOMEM. */
int worker_pool_start(struct worker_pool **pool_out, struct run *run, struct sink *sinks,
		      size_t sink_count);

/*
 * Waits for the log of that place: for all, in their order. Its reading, whose run is the one the crew
 * was hired for, to which what its events counted was added; error says if something went wrong.
 * Until worker_pool_release(). NULL: it could not be opened, or is to be read by who asks.
 */
struct reading *worker_pool_wait(struct worker_pool *pool, size_t index);
void worker_pool_release(struct worker_pool *pool, size_t index);

/* Stops the workers, at the end or before. Accepts NULL. */
void worker_pool_stop(struct worker_pool *pool);

#endif
