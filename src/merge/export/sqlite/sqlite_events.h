/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_SQLITE_EVENTS_H
#define XT_MERGE_SQLITE_EVENTS_H

#include "merge/export/sqlite/sqlite_state.h"

/* Writes rows of events, threads and counters. */
extern const struct track_writer sqlite_writer;

#endif
