/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reading of one log apart from the run: loads its model, joins its events and sums them.
 *
 * Threads (worker_pool.h) and processes (cluster_worker.h) read logs in this way. A job changes
 * nothing that logs share. Only the main thread adds a job to the run, in the order of the logs.
 */
#ifndef XT_MERGE_LOG_JOB_H
#define XT_MERGE_LOG_JOB_H

#include "merge/sums/reading.h"

struct log_job {
	struct reading reading;
	bool is_read;
	bool is_opened; /* otherwise the main thread reports the error */
};

/* Returns whether logs can be read apart from the run. See worker_pool.h for the exceptions. */
bool log_jobs_possible(const struct run *run, const struct sink *sinks, size_t sink_count);

/* run and sinks must outlive the job. index: of the log. */
void log_job_init(struct log_job *job, struct run *run, struct sink *sinks, size_t sink_count,
		  size_t index);

/* Reads the log. helper_count: so many other threads may decode chunks, too. Sets reading.error. */
void log_job_read(struct log_job *job, size_t helper_count);

/* Adds the counts to the run. */
struct reading *log_job_join(struct log_job *job);

void log_job_free(struct log_job *job);

#endif
