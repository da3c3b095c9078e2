/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders the points of a history and divides them into groups.
 */
#ifndef XT_DIFF_HISTORY_GROUPS_H
#define XT_DIFF_HISTORY_GROUPS_H

#include "diff/history/group.h"

struct groups {
	struct history_group *list;
	size_t count, capacity;
};

/*
 * Orders the used points: by commit if git knows it, else by start time. Adds notes about
 * duplicates, clocks, gaps, machines and renamed paths. Free it with groups_free().
 */
void groups_make(struct groups *groups, struct history *history, const char *const *branches,
		 size_t branch_count);
void groups_free(struct groups *groups);

#endif
