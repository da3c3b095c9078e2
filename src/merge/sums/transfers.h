/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies by direction and sets by memory: how many, how many bytes, how long.
 */
#ifndef XT_MERGE_TRANSFERS_H
#define XT_MERGE_TRANSFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/names.h"
#include "merge/read/model.h"

struct transfer_sum {
	uint64_t count;
	uint64_t bytes;
	uint64_t gpu_ns;
};

struct transfer_row {
	uint32_t name;
	bool is_memset;
	struct transfer_sum sum;
};

/* Of all processes; all zeros is an empty one. */
struct transfers {
	struct transfer_row *rows;
	size_t count;
	size_t capacity;
	size_t *places; /* by name: row + 1, or 0 */
	size_t place_capacity;
};

/* Both add a sum to the row of that kind of copy, or of sets of that memory (CUPTI's). names is the
 * table that the rows' names are of. 0 or -ENOMEM. */
int transfers_add_copies(struct transfers *transfers, struct names *names,
			 const struct copy_shape *shape, const struct transfer_sum *sum);
int transfers_add_memsets(struct transfers *transfers, struct names *names, uint32_t memory,
			  const struct transfer_sum *sum);
void transfers_free(struct transfers *transfers);

/* By time, the longest first. */
void transfers_sort(struct transfers *transfers);

#endif
