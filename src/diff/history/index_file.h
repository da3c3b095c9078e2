/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a history: the values of all runs that were read before, so that only new runs are
 * parsed. It can be deleted at any time. docs/HISTORY.md describes it.
 */
#ifndef XT_DIFF_HISTORY_INDEX_FILE_H
#define XT_DIFF_HISTORY_INDEX_FILE_H

#include "diff/history/history.h"

/*
 * Reads an index into an empty history. A missing, damaged or newer index is ignored, with a note
 * unless it is missing.
 */
int index_read(struct history *history, const char *path);

/* Writes what this call used, atomically. Returns as xt_new_file_open(). */
int index_write(const struct history *history, const char *path);

#endif
