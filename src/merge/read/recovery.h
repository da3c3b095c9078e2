/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes the logs of killed processes from their crash buffers before they are read.
 */
#ifndef XT_MERGE_RECOVERY_H
#define XT_MERGE_RECOVERY_H

#include "merge/read/inputs.h"

/*
 * Completes each log that has the crash buffer of a dead process, and reports the result. Leaves a
 * log unchanged if that fails. Deletes unused crash buffers beside empty logs.
 */
void recovery_run(struct inputs *inputs, struct report *report);

#endif
