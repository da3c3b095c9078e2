/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the iterations of a process: the instances of an NVTX range, or else a period in the
 * sequence of launches.
 */
#ifndef XT_MERGE_PROFILE_ITERATIONS_H
#define XT_MERGE_PROFILE_ITERATIONS_H

#include "merge/profile/profile_windows.h"
#include "merge/read/model.h"

/*
 * Finds the iterations in the log of this model and divides them into batches. Returns 0, or
 * -ENOENT if the requested range has fewer than PROFILE_ITERATIONS_MIN instances. Call
 * windows_free() in any case.
 */
int iterations_find(struct windows *windows, const struct model *model, const char *log_path,
		    const struct windows_request *request);

/*
 * Formats the name of an NVTX range with masked numbers. The caller frees it. Returns NULL if out
 * of memory.
 */
char *iterations_range_name(const struct model *model, const struct range_node *node);

#endif
