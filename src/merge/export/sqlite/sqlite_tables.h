/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SQLITE_TABLES_H
#define XT_MERGE_SQLITE_TABLES_H

#include "merge/export/sqlite/sqlite_state.h"

struct run;

/* Tables whose size does not depend on the number of events. */
void sqlite_begin_process(struct sink *sink, const struct process *process);
void sqlite_forget_process(struct sqlite *s);
/* Returns the row id of the work's shape. */
int64_t sqlite_shape(struct sink *sink, const struct process *process, const struct work *work);
void sqlite_put_run(struct sink *sink, const struct run *run);

#endif
