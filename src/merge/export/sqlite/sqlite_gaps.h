/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle gaps of devices. Call paths are known only after the last event of a log. So a gap refers to
 * a row of gap_end, which gets the path of the work.
 */
#ifndef XT_MERGE_SQLITE_GAPS_H
#define XT_MERGE_SQLITE_GAPS_H

#include "merge/export/sqlite/sqlite_state.h"

struct stretch;

/* Adds the gap before a piece of work, if any. */
void sqlite_put_gap(struct sink *sink, const struct process *process,
		    const struct stretch *stretch);

/* Notes the path of an owner of work. Called for each total of a log. */
void sqlite_add_gap_end(struct sink *sink, const struct total *total, uint32_t node);

/* Writes the paths of the gaps of a log. */
void sqlite_put_gap_ends(struct sink *sink);

/* Deletes the state of a log, and of all logs. */
void sqlite_forget_gaps(struct sqlite *s);

#endif
