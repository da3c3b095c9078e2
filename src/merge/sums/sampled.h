/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that were taken of some calls only: what was added up of calls without one goes to the call paths of
 * those that have one, in the same proportions.
 *
 * Chance decided for each call by itself, so the ones with a stack stand for the others of their kind: of the
 * same thread, function and rate, with the same kernel (or copy, or set) and in the same NVTX range and graph;
 * where none of these has a stack, of the same thread, function and rate alone. Sums stay as they are, to the
 * last nanosecond; docs/internals/ATTRIBUTION.md says how far the shares are to be believed.
 */
#ifndef XT_MERGE_SAMPLED_H
#define XT_MERGE_SAMPLED_H

#include "merge/reading.h"

/* When all events of a log are read, before its totals become paths. 0 or -ENOMEM. */
int distribute_unsampled(struct reading *reading);

#endif
