/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies by direction and memsets by memory kind: count, bytes and duration.
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

/* Sums over all processes. Zeros are empty. */
struct transfers {
	struct transfer_row *rows;
	size_t count;
	size_t capacity;
	size_t *places; /* row + 1 by name; 0: none */
	size_t place_capacity;
};

/*
 * Adds a sum to the row of a copy kind, or of memsets of a memory kind (CUPTI's numbers). The rows
 * are named in this table of names.
 */
void transfers_add_copies(struct transfers *transfers, struct names *names,
			  const struct copy_shape *shape, const struct transfer_sum *sum);
void transfers_add_memsets(struct transfers *transfers, struct names *names, uint32_t memory,
			   const struct transfer_sum *sum);
void transfers_free(struct transfers *transfers);

/* Sort the rows by time, longest first. */
void transfers_sort(struct transfers *transfers);

#endif
