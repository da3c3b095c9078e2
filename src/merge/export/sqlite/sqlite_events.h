/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SQLITE_EVENTS_H
#define XT_MERGE_SQLITE_EVENTS_H

#include "merge/export/sqlite/sqlite_state.h"

/* Writes threads, NVTX ranges and counters. */
extern const struct track_writer sqlite_writer;

/* Functions of struct exporter. */
int sqlite_put_call(struct sink *sink, const struct process *process, const struct launch *call,
		    uint64_t duration_ns, uint64_t result);
int sqlite_put_work(struct sink *sink, const struct process *process, const struct work *work,
		    const struct launch *launch);
int sqlite_put_sample(struct sink *sink, const struct process *process,
		      const struct cpu_sample *sample);

#endif
