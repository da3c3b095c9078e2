/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of killed processes are completed from their crash buffers before they are read.
 */
#ifndef XT_MERGE_RECOVERY_H
#define XT_MERGE_RECOVERY_H

#include "merge/read/inputs.h"

/* Completes each log that has a crash buffer whose process is dead, and says what came of it. A log that
 * cannot be completed is left as it is. Crash buffers that were never used, beside empty logs, are deleted. */
void recovery_run(struct inputs *inputs, struct report *report);

#endif
