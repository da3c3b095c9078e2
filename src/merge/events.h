/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the events of a log into a reading.
 */
#ifndef XT_MERGE_EVENTS_H
#define XT_MERGE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

struct progress;
struct reading;
struct xt_reader;
struct sink;

/*
 * Reads all events of the log. helper_count: so many other threads may decode chunks, too. Changes
 * only the reading, its model and the counters of its run, unless there are exporters of single
 * events or a selection.
 */
void reading_events(struct reading *reading, struct xt_reader *reader, size_t helper_count,
		    struct progress *progress);

/* Adds the totals of the log to the run. */
void reading_finish(struct reading *reading);

/* Returns whether an exporter needs single events. */
bool sinks_want_events(const struct sink *sinks, size_t sink_count);

/* Frees the tables of the reading. */
void reading_free(struct reading *reading);

#endif
