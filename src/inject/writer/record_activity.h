/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from the activity buffers of CUPTI. Writer thread only. */
#ifndef XT_INJECT_RECORD_ACTIVITY_H
#define XT_INJECT_RECORD_ACTIVITY_H

#include "inject/writer/recorder.h"

/* record_activity.c: takes what completed buffers hold, as long as they can be held. */
void record_activity(struct recorder *rec);

/* For the crash buffer: the names of kernels in buffers that were not read yet, if none was read since the
 * last time. */
void prefetch_names(struct recorder *rec);

/* Whether CUPTI, which was asked for everything, still has a buffer with work that was over then. */
bool cupti_holds_unfinished_work(uint64_t since_ns);

#endif
