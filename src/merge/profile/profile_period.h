/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds iterations without NVTX ranges, as a repeating sequence of launches.
 */
#ifndef XT_MERGE_PROFILE_PERIOD_H
#define XT_MERGE_PROFILE_PERIOD_H

#include "merge/profile/profile_windows.h"
#include "merge/read/model.h"

/*
 * Finds the period of the thread with the most launches. If there is none, use slices of equal
 * time. Reads the calls of the log. Returns 0 or -errno.
 */
int period_find(struct windows *windows, const struct model *model, const char *log_path);

#endif
