/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's activity buffers: a pool in the crash buffer. The two callbacks that CUPTI makes, on threads
 * of the application or of its own, only change the state of a buffer; the writer thread reads
 * the records.
 *
 * The pool grows as long as the budget allows. When it does not, and the writer has buffers to give
 * back, who asks for one waits for that, as for room in a ring, and what then still finds no room is
 * lost and counted. Buffers that CUPTI keeps, because their kernels run, are not the writer's to give
 * back: for them the pool grows beyond the budget, and shrinks again.
 */
#ifndef XT_INJECT_ACTIVITY_H
#define XT_INJECT_ACTIVITY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "xtrace/crash_buffer_format.h"

#define ACTIVITY_BUFFERS_MAX 1024
#define ACTIVITY_DATA_BYTES  (128u << 10)
#define ACTIVITY_SPARE	     12 /* free buffers that the writer keeps ready */
#define ACTIVITY_OWN	     24 /* buffers for which the budget is not asked */
#define ACTIVITY_BACKLOG_MAX 48 /* as many may wait for the writer before others wait for it */
#define ACTIVITY_TIMEOUT_NS  1000000000

struct activity_buffer {
	struct xt_activity_header *header;
	uint8_t *data;
	atomic_bool is_empty;  /* its data have no memory, until they are filled again */
	bool is_budgeted;      /* the budget was asked for it, and gave */
	bool is_unbacked;      /* it is plain memory, not in the crash buffer */
	bool held;	       /* the writer's: its records were taken, it waits for the flush */
	uint32_t peeked_bytes; /* the writer's: whose names it has seen while CUPTI had it */
};

extern atomic_uint_fast64_t activity_discarded; /* buffers for which there was no room */
extern atomic_uint_fast64_t
	activity_invalid; /* given back twice, or said to be longer than they are */

/* For cuptiActivityRegisterCallbacks(). */
void activity_requested(uint8_t **buffer_out, size_t *bytes_out, size_t *max_records_out);
void activity_completed(void *context, uint32_t stream_id, uint8_t *buffer, size_t bytes,
			size_t valid_bytes);

/* CUPTI keeps buffers, and gives them to whoever registered last: what is not ours is handed on to the
 * tool that did so before; NULL: there was none. */
extern _Atomic(xt_cupti_buffer_completed) activity_foreign_completed;

/* In a forked child, where the areas are its parent's: from now on buffers are discarded. */
void activity_abandon(void);

#endif
