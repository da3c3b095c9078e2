/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings about the CPU code that the GPU waited for, from the samples of a CPU log. They divide
 * the idle time of gaps, including the longest. So their shares refer to the whole time from the
 * first to the last work of the devices.
 *
 * The state of a sampled thread, and the functions and files on its stack, say why it kept the GPU
 * waiting.
 */
#ifndef XT_MERGE_RULES_CPU_H
#define XT_MERGE_RULES_CPU_H

#include "merge/findings/detection.h"

/* Adds the findings of a process. */
void cpu_findings_detect(struct detection *detection);

/* Whether the samples tell what the CPU did in most of the idle time that it caused. */
bool cpu_findings_explain(const struct reading *reading);

/*
 * Finds the line in which a thread spent most of [from_ns, until_ns). *share_ns_out is its time; 0:
 * the time was not sampled, and the place is not set. The caller frees place->frames.
 */
void cpu_place_of_span(struct reading *reading, uint32_t tid, uint64_t from_ns, uint64_t until_ns,
		       struct finding_place *place, uint64_t *share_ns_out);

#endif
