/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of host threads by call path: the weights cpu-time and off-cpu.
 */
#ifndef XT_MERGE_CPU_SUMS_H
#define XT_MERGE_CPU_SUMS_H

#include "merge/reading.h"

/*
 * Adds the samples of reading->process.cpu to the aggregate, and passes them to the exporters.
 * Returns 0 or -ENOMEM.
 */
int cpu_sums_add(struct reading *reading);

#endif
