/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_RULES_PROCESSES_H
#define XT_MERGE_RULES_PROCESSES_H

#include "merge/findings/detection.h"

struct run;

/* Record the devices of a process, and compare those of different processes. */
void findings_note_devices(const struct detection *detection);
void findings_compare_devices(struct run *run);

/* Adds the finding that ranks wait for each other, if run->compared->report has a verdict. */
void findings_compare_ranks(struct run *run);

#endif
