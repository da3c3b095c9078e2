/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call paths in the database. Paths in which work or a call ends have their text, their kind and
 * the line of the user's code. The frames between them have none, because there are many.
 */
#ifndef XT_MERGE_SQLITE_PATHS_H
#define XT_MERGE_SQLITE_PATHS_H

#include "merge/export/sqlite/sqlite_state.h"

/* Binds the path of a call to a column, or NULL if it is unknown. */
void sqlite_bind_stack(struct sink *sink, enum statement statement, int column,
		       const struct process *process, uint32_t stack);

/* Notes what ends at a path. Called for each total of a log. */
void sqlite_add_path(struct sink *sink, const struct process *process, const struct total *total,
		     uint32_t node);

/*
 * Notes a path that ranks wait for. If no work of a log ends there, its line is known unless
 * several lines have its name.
 */
void sqlite_add_cause(struct sink *sink, const struct paths *paths, uint32_t node);

/* Writes all paths. Called after the last log. */
void sqlite_put_paths(struct sink *sink, const struct paths *paths);

#endif
