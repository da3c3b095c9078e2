/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SQLITE_TABLES_H
#define XT_MERGE_SQLITE_TABLES_H

#include "merge/export/sqlite/sqlite_state.h"

/* Tables that do not grow with the events (sqlite_tables.c). All: 0 or -ENOMEM. */
int sqlite_begin_process(struct sink *sink, const struct process *process);
void sqlite_forget_process(struct sqlite *s);
int64_t sqlite_shape(struct sink *sink, const struct process *process, const struct work *work);
int sqlite_put_run(struct sink *sink, const struct run *run);

#endif
