/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings about the CPU code that the GPU waited for, from the samples of a CPU log. They divide
 * the idle time of gaps, including the longest. So their shares refer to the whole time from the
 * first to the last work of the devices.
 */
#ifndef XT_MERGE_RULES_CPU_H
#define XT_MERGE_RULES_CPU_H

#include "merge/findings/detection.h"

/* Adds the findings of a process. */
void cpu_findings_detect(struct detection *detection);

/* Whether the samples tell what the CPU did in most of the idle time that it caused. */
bool cpu_findings_explain(const struct reading *reading);

#endif
