/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges of a log: pairs their begins and ends.
 *
 * A pop ends the innermost pushed range of its thread and domain. Any thread may end a started
 * range, and such an end may come earlier in the log than the start. It waits for the start then.
 */
#ifndef XT_MERGE_TRACK_RANGES_H
#define XT_MERGE_TRACK_RANGES_H

#include "merge/tracks/track_state.h"

/* The exporter's range(). */
void tracks_range(struct sink *sink, const struct process *process, const struct xt_row_range *row);

/* Ends the ranges that have no end in the log. */
void track_ranges_end(struct tracks *t);
void track_ranges_free(struct tracks *t);

#endif
