/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call paths that continue under another name.
 */
#ifndef XT_DIFF_HISTORY_RENAMES_H
#define XT_DIFF_HISTORY_RENAMES_H

#include "diff/history/group.h"

/*
 * Pairs call paths that end at a point with similar ones that begin there. Fills the renames of
 * the group and adds a note for each.
 */
void renames_find(struct history *history, struct history_group *group);

#endif
