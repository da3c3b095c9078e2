/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_FINDINGS_PROCESSES_H
#define XT_MERGE_FINDINGS_PROCESSES_H

#include "merge/findings/findings_rules.h"

/* Devices of different processes. Both 0 or -ENOMEM. */
int findings_note_devices(const struct looking *looking);
int findings_compare_devices(struct run *run);

#endif
