/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the points of a history.
 */
#ifndef XT_DIFF_HISTORY_ORDER_H
#define XT_DIFF_HISTORY_ORDER_H

#include "diff/history/history.h"

/*
 * Lists the used points without duplicates, by commit if git knows it, else by start time. The
 * caller frees the list. Adds notes.
 */
void history_order(struct history *history, const char *const *branches, size_t branch_count,
		   size_t **points_out, size_t *count_out);

#endif
