/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SQLITE_SCHEMA_H
#define XT_MERGE_SQLITE_SCHEMA_H

#include "merge/export/sqlite/sqlite_state.h"

extern const char sqlite_tables[];
extern const char sqlite_indexes_and_views[];
extern const char *const sqlite_inserts[STATEMENTS];

#endif
