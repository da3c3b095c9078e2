/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations that no range tells of: what repeats itself in the sequence of launches.
 */
#ifndef XT_MERGE_PROFILE_PERIOD_H
#define XT_MERGE_PROFILE_PERIOD_H

#include "merge/profile/profile_windows.h"
#include "merge/read/model.h"

/*
 * Finds the period of the thread that launches most, else slices of equal time. The calls of the log are
 * read for it. 0 or -ENOMEM.
 */
int period_find(struct windows *windows, const struct model *model, const char *log_path);

#endif
