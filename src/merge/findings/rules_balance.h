/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_RULES_BALANCE_H
#define XT_MERGE_RULES_BALANCE_H

#include "merge/findings/detection.h"

/* Rules: detect_*() adds candidates, describe_*() writes the finding. */
void detect_serial_streams(struct detection *detection);
void detect_stream_imbalance(struct detection *detection);
void detect_device_imbalance(struct detection *detection);
void detect_small_grids(struct detection *detection);
void describe_serial_streams(const struct detection *detection, struct finding *finding);
void describe_stream_imbalance(const struct detection *detection, struct finding *finding);
void describe_device_imbalance(const struct detection *detection, struct finding *finding);
void describe_small_grids(const struct detection *detection, struct finding *finding);

/* The callsite of most kernels on a device, or CALLSITE_NONE. */
uint32_t busiest_callsite(const struct callsites *callsites, uint32_t device);

/* The excess of the busiest over the mean, or 0 if it is small. */
uint64_t imbalance_ns(uint64_t most_ns, uint64_t sum_ns, uint64_t count);

#endif
