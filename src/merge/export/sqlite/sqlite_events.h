/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths in which work or a call ends have their text, their kind and the line of the user's code.
 * The frames between them have none, because there are many.
 *
 * Call paths are known only after the last event of a log. So a gap refers to a row of gap_end,
 * which gets the path of the work.
 */
#ifndef XT_MERGE_SQLITE_EVENTS_H
#define XT_MERGE_SQLITE_EVENTS_H

#include "merge/export/sqlite/sqlite_rows.h"

struct run;
struct stretch;

/* Writes rows of events, threads and counters. */
extern const struct track_writer sqlite_writer;

/* Adds the gap before a piece of work, if any. */
void sqlite_put_gap(struct sink *sink, const struct process *process,
		    const struct stretch *stretch);

/* Notes the path of an owner of work. Called for each total of a log. */
void sqlite_add_gap_end(struct sink *sink, const struct total *total, uint32_t node);

/* Writes the paths of the gaps of a log. */
void sqlite_put_gap_ends(struct sink *sink);

/* Deletes the state of a log, and of all logs. */
void sqlite_forget_gaps(struct sqlite *s);

/* Notes what ends at a path. Called for each total of a log. */
void sqlite_add_path(struct sink *sink, const struct process *process, const struct total *total,
		     uint32_t node);

/* Writes all paths. Called after the last log. */
void sqlite_put_paths(struct sink *sink, const struct paths *paths);

/*
 * Writes what the comparison of ranks found, if there was one. Call it before sqlite_put_paths().
 */
void sqlite_put_collectives(struct sink *sink, const struct run *run);

#endif
