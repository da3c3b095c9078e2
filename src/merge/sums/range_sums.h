/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of NVTX ranges over all processes. build_tree_ranges.c fills them.
 */
#ifndef XT_MERGE_RANGE_SUMS_H
#define XT_MERGE_RANGE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/naming/paths.h"
#include "merge/read/ranges.h"

/* Sums over the instances of an NVTX range. */
struct range_sums {
	uint64_t opened_count;
	uint32_t category; /* of the first instance; name in the tree of ranges, or NAME_EMPTY */
	bool has_several_categories; /* the instances differ in their category */
	struct range_payload payload;
};

struct range_tree {
	struct paths tree;	 /* weights include nested ranges */
	struct range_sums *sums; /* by node of the tree */
	size_t sum_capacity;
	struct range_counts counts;
};

#endif
