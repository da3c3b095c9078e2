/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SQLITE_TABLE_DEFS_H
#define XT_MERGE_SQLITE_TABLE_DEFS_H

#include "merge/export/sqlite/sqlite_state.h"
#include "merge/tables/table.h"

/* Creates and fills the declared tables of which the database has no view. */
void sqlite_put_table_defs(struct sink *sink, const struct run *run);

#endif
