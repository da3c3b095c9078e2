/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: where spans of a stream are put so that on none of them two overlap.
 *
 * Kernels, copies and sets come in turns, each kind in order, so what comes may belong between what
 * is there: of each lane the latest spans are kept.
 */
#ifndef XT_MERGE_LANES_H
#define XT_MERGE_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANES_MAX      64
#define LANE_SPANS_MAX 8192

#define LANE_NONE   (-1) /* it overlaps with something on each of LANES_MAX */
#define LANE_FAILED (-2) /* memory ran out */

struct lane_span {
	uint64_t start_ns;
	uint64_t end_ns;
};

struct lane {
	struct lane_span *spans; /* in order; what touches is one */
	size_t span_capacity;
	uint32_t span_count;
	uint64_t forgotten_until_ns; /* spans before that are not kept any more */
};

/* All zeros is none; not_before: what ends where something begins that came earlier is taken to
 * overlap with it, for those who tell begin and end at one time by the order in which they came. */
struct lanes {
	struct lane *list;
	uint32_t count;
	bool not_before;
};

/* The lane for a span: the first that is free then, made if need be; or LANE_NONE, LANE_FAILED. */
int lanes_place(struct lanes *lanes, uint64_t start_ns, uint64_t end_ns);
void lanes_free(struct lanes *lanes);

#endif
