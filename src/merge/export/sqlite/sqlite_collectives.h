/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SQLITE_COLLECTIVES_H
#define XT_MERGE_SQLITE_COLLECTIVES_H

#include "merge/export/sqlite/sqlite_state.h"

struct run;

/*
 * Writes what the comparison of ranks found, if there was one. Call it before sqlite_put_paths().
 */
void sqlite_put_collectives(struct sink *sink, const struct run *run);

#endif
