/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU memory that is allocated, for readers of logs that lack their beginning. Writer thread
 * only; allocates.
 */
#ifndef XT_INJECT_MEMORY_TOTALS_H
#define XT_INJECT_MEMORY_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "log/base/allocations.h"

#define MEMORY_TOTALS_MAX	  16384 /* allocations; with more, nothing is known */
#define MEMORY_TOTALS_DEVICES_MAX 64

/* Zeros are a program that has not allocated anything. */
struct memory_totals {
	struct xt_allocations allocations;
	uint64_t bytes[MEMORY_TOTALS_DEVICES_MAX];
	bool is_used[MEMORY_TOTALS_DEVICES_MAX];
	bool is_unknown; /* too many allocations, or out of memory */
};

/* Takes an allocation or a free that was added to the log. */
void memory_totals_take(struct memory_totals *totals, const struct cupti_activity_memory *memory);

/*
 * "TIME DEVICE:BYTES ...", as of the last one taken. False if that is not known, if there was none,
 * or if it does not fit.
 */
bool memory_totals_text(const struct memory_totals *totals, uint64_t now_ns, char *out,
			size_t out_bytes);

void memory_totals_free(struct memory_totals *totals);

#endif
