/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from the activity buffers of CUPTI. Writer thread only. */
#ifndef XT_INJECT_RECORD_ACTIVITY_H
#define XT_INJECT_RECORD_ACTIVITY_H

#include "inject/writer/recorder.h"

/* Turns completed buffers into rows, as long as they can be held. */
void record_activity(struct recorder *rec);

/*
 * Stores the kernel names of unread buffers in the crash buffer, if no buffer was read since the
 * last call.
 */
void prefetch_names(struct recorder *rec);

#endif
