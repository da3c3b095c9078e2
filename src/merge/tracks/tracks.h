/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the tracks and spans of a timeline from the events of logs: the functions of an exporter
 * that has a struct track_writer.
 */
#ifndef XT_MERGE_TRACKS_H
#define XT_MERGE_TRACKS_H

#include "merge/tracks/track_state.h"

/* For exporters whose state begins with struct tracks. */
void tracks_begin(struct sink *sink, const struct track_writer *writer);
void tracks_free(struct sink *sink);

void tracks_process(struct sink *sink, const struct process *process);
void tracks_call(struct sink *sink, const struct process *process, const struct launch *call,
		 uint64_t duration_ns, uint64_t result);
void tracks_work(struct sink *sink, const struct process *process, const struct work *work,
		 const struct launch *launch);
void tracks_memory(struct sink *sink, const struct process *process, uint32_t pool,
		   uint64_t time_ns, uint64_t live_bytes);
void tracks_range(struct sink *sink, const struct process *process, const struct xt_row_range *row);
/* Called by thread and in order of time. */
void tracks_sample(struct sink *sink, const struct process *process,
		   const struct cpu_sample *sample);
void tracks_process_end(struct sink *sink, const struct process *process);

/* Members of an exporter that passes all events on. */
#define TRACKS_EVENTS                                                                              \
	.process = tracks_process, .on.call = tracks_call, .on.work = tracks_work,                 \
	.on.memory = tracks_memory, .on.range = tracks_range, .on.cpu_sample = tracks_sample,      \
	.process_end = tracks_process_end

#endif
