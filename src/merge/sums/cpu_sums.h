/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of host threads by call path: the weights cpu-time and off-cpu.
 */
#ifndef XT_MERGE_CPU_SUMS_H
#define XT_MERGE_CPU_SUMS_H

#include <stdbool.h>

struct cpu_sample;
struct reading;

/* Adds the samples of reading->process.cpu to the aggregate, and passes them to the exporters. */
void cpu_sums_add(struct reading *reading);

/*
 * Whether the user selected this sample of reading->process. A sample belongs to the window in
 * which it begins. No NVTX range is known for it.
 */
bool cpu_sums_wants(const struct reading *reading, const struct cpu_sample *sample);

#endif
