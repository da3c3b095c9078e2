/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovers events of killed processes from their crash buffers before their logs are read.
 */
#ifndef XT_MERGE_RECOVERY_H
#define XT_MERGE_RECOVERY_H

#include "merge/read/inputs.h"

/*
 * Completes each log that has the crash buffer of a dead process, and reports the result. On errors
 * the log stays unchanged. Deletes unused crash buffers of empty logs.
 */
void recovery_run(struct inputs *inputs, struct report *report);

#endif
