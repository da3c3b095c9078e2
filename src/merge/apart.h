/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a log apart from the run: loads its model, joins its events and sums them.
 *
 * Threads (worker_pool.h) and processes (cluster.h) read logs in this way, and processes pack the
 * result into a message. This changes nothing that logs share. Only the main thread adds a log to
 * the run, in the order of the logs.
 */
#ifndef XT_MERGE_APART_H
#define XT_MERGE_APART_H

#include "merge/base/pack.h"
#include "merge/sums/reading.h"
#include "merge/symbolize/debug_files.h"

struct log_job {
	struct reading reading;
	bool is_read;
	bool is_opened; /* otherwise the main thread reports the error */
};

/* Returns whether threads can read logs apart. See worker_pool.h for the exceptions. */
bool log_jobs_possible(const struct run *run, const struct sink *sinks, size_t sink_count);

/* run and sinks must outlive the job. index: of the log. */
void log_job_init(struct log_job *job, struct run *run, struct sink *sinks, size_t sink_count,
		  size_t index);

/* Reads the log. helper_count: so many other threads may decode chunks, too. Sets reading.error. */
void log_job_read(struct log_job *job, size_t helper_count);

/* Adds the counts to the run. */
struct reading *log_job_join(struct log_job *job);

void log_job_free(struct log_job *job);

/*
 * When writing: the log has been read. When reading: the reading was only initialised, but has the
 * model of its log. Afterwards it is as if it had been read here. The pack's error is -ESTALE if
 * the log has changed meanwhile.
 */
void pack_reading(struct pack *pack, struct reading *reading);

/*
 * Returns whether other processes can read logs apart. They cannot for a selection, and for
 * exporters that need each event, such as timelines.
 */
bool apart_is_possible(const struct run *run, const struct sink *sinks, size_t sink_count);

/* The beginning of a result. */
struct apart_head {
	uint32_t index;	     /* of the log */
	bool is_opened;	     /* false: the coordinator must read it */
	int error;	     /* 0 or an error of the reading */
	uint64_t file_bytes; /* of the log, when its reading began */
};

/*
 * Reads a log and begins a pack with the result: a head, pack_reading(), and the sinks. It counts
 * as not opened if another log has its path here, or if an exporter cannot keep all. sinks: need
 * not be open.
 *
 * Exporters of single events collect what their pack() writes, in sinks of the log's own. Names are
 * found twice then: here, because these exporters tell functions of the API apart, and when the log
 * is added to the run, because names depend on all logs.
 */
void apart_read(struct pack *pack, struct run *run, const struct sink *sinks, size_t sink_count,
		struct debug_search *search, uint32_t index);

void apart_pack_head(struct pack *pack, struct apart_head *head);

/* The present size of a log, 0 if unknown. */
uint64_t apart_file_bytes(const struct input *log);

#endif
