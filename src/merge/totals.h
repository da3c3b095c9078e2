/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time added up by (stack, API, shape): what remains of millions of kernels.
 */
#ifndef XT_MERGE_TOTALS_H
#define XT_MERGE_TOTALS_H

#include <stddef.h>
#include <stdint.h>

struct total {
	uint32_t stack; /* XT_STACK_ID, 0: not attributed */
	uint32_t shape; /* XT_SHAPE_ID */
	uint32_t api;	/* place in the model's apis */
	uint32_t reserved;
	uint64_t gpu_ns;
	uint64_t kernel_count; /* 0: a free place */
};

/* An open hash table; all zeros is an empty one. */
struct totals {
	struct total *entries;
	uint32_t size;
	uint32_t used;
};

/* 0 or -ENOMEM. */
int totals_add(struct totals *totals, uint32_t stack, uint32_t api, uint32_t shape,
	       uint64_t duration_ns);
void totals_free(struct totals *totals);

#endif
