/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator of a cluster: hands out logs to the workers, and reads logs itself meanwhile.
 *
 * Workers ask for nothing: each has two logs at a time, so it can go on while the coordinator is
 * busy. Results are taken in the order of the logs, so outputs do not depend on timing. At most
 * COORDINATOR_AHEAD logs per process are read ahead, which bounds the memory.
 *
 * The coordinator reads three kinds of logs itself: those that are still being written, those that
 * a worker cannot open, and those that changed while a worker read them.
 */
#ifndef XT_MERGE_COORDINATOR_H
#define XT_MERGE_COORDINATOR_H

#include "merge/cluster.h"
#include "merge/symbolize/debug_files.h"

struct reading;
struct run;
struct sink;

#define COORDINATOR_AHEAD 4

struct coordinator;

/* run and sinks must outlive it. */
void coordinator_start(struct coordinator **coordinator_out, struct cluster *cluster,
		       struct run *run, struct sink *sinks, size_t sink_count,
		       struct debug_search *search);

/*
 * Waits for the log with that index, as worker_pool_wait() does. Reports workers that failed, and
 * sets the error of the reading.
 */
struct reading *coordinator_wait(struct coordinator *coordinator, size_t index);

/* Reports that the packed part of a reading was damaged. */
void coordinator_reject(struct coordinator *coordinator, size_t index);
void coordinator_release(struct coordinator *coordinator, size_t index);

/* Frees the results that were not taken. Accepts NULL. */
void coordinator_free(struct coordinator *coordinator);

/* Tells all workers that nothing more follows. */
void coordinator_stop_workers(struct cluster *cluster);

#endif
