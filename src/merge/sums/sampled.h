/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributes the sums of calls without a captured stack to the call paths of sampled calls.
 *
 * Sampling is random, so sampled calls represent the unsampled ones of the same kind. The same kind
 * means the same thread, function and rate, with the same kernel, copy or memset, NVTX range and
 * graph. If no such call was sampled, thread, function and rate are enough.
 *
 * The total stays exact to the nanosecond. docs/internals/ATTRIBUTION.md describes the accuracy of
 * the shares.
 */
#ifndef XT_MERGE_SAMPLED_H
#define XT_MERGE_SAMPLED_H

struct reading;

/* Call it after all events of a log are read and before build_tree(). */
void distribute_unsampled(struct reading *reading);

#endif
