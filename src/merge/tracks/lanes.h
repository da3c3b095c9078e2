/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: assign the spans of a stream to rows so that no two spans of a row overlap.
 *
 * Kernels, copies and memsets arrive in separate batches, each in order. A span may therefore
 * belong between earlier ones, so each lane keeps its latest spans.
 */
#ifndef XT_MERGE_LANES_H
#define XT_MERGE_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANES_MAX      64
#define LANE_SPANS_MAX 8192

#define LANE_NONE (-1) /* it overlaps with a span in each of LANES_MAX lanes */

struct lane_span {
	uint64_t start_ns;
	uint64_t end_ns;
};

struct lane {
	struct lane_span *spans; /* ordered; adjacent spans are merged */
	size_t span_capacity;
	uint32_t span_count;
	uint64_t forgotten_until_ns; /* spans before this time have been dropped */
};

/*
 * Zeros are empty. With not_before, a span that ends exactly where an earlier added one starts
 * counts as overlapping. Some formats order a begin and an end at the same time by their position.
 */
struct lanes {
	struct lane *list;
	uint32_t count;
	bool not_before;
};

/*
 * Assigns a span to the first lane that is free then; adds a lane if needed. Returns the lane, or
 * LANE_NONE.
 */
int lanes_place(struct lanes *lanes, uint64_t start_ns, uint64_t end_ns);
void lanes_free(struct lanes *lanes);

#endif
