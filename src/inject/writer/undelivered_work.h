/* SPDX-License-Identifier: Apache-2.0 */
/* GPU work in buffers that CUPTI owns. Writer thread only. */
#ifndef XT_INJECT_UNDELIVERED_WORK_H
#define XT_INJECT_UNDELIVERED_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"

/*
 * Learns the size of a record, which depends on CUPTI's version, from the address of the next one.
 * Keeps the smallest distance.
 */
void undelivered_learn_bytes(const struct cupti_activity *record,
			     const struct cupti_activity *next);

/* The size of a record in a buffer that CUPTI owns; 0: not known. */
uint32_t undelivered_record_bytes(uint32_t kind);

/* GPU work whose records the writer has not read: CUPTI has them, or they were just delivered. */
struct undelivered_work {
	uint64_t kernel_count;
	uint64_t unfinished_count, finished_count; /* also of copies and memsets */
};

/* False if the size of a record is not known yet, so that not all were found. */
bool find_undelivered_work(struct undelivered_work *undelivered);

/* Whether CUPTI, after a forced flush, still owns a buffer with work that ended before since_ns. */
bool cupti_holds_unfinished_work(uint64_t since_ns);

#endif
