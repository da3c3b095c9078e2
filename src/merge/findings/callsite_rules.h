/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules about the sums by callsite: how each finds what wastes time, and what it says then.
 */
#ifndef XT_MERGE_CALLSITE_RULES_H
#define XT_MERGE_CALLSITE_RULES_H

#include "merge/findings/detection.h"

/* Rules about anything else have rows of zeros. */
extern const struct callsite_rule callsite_rules[RULES];

/* The callsite of most kernels on a device, or CALLSITE_NONE. */
uint32_t busiest_callsite(const struct callsites *callsites, uint32_t device);

/* The excess of the busiest over the mean, or 0 if it is small. */
uint64_t imbalance_ns(uint64_t most_ns, uint64_t sum_ns, uint64_t count);

#endif
