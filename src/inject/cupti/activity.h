/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's activity buffers, a pool in the crash buffer. CUPTI's two callbacks only change the state
 * of a buffer. The writer thread reads the records.
 *
 * The pool grows within the budget. If the budget is used up while the writer has buffers to
 * release, a requesting thread waits for one. If it gets none, CUPTI's records are discarded and
 * counted. While kernels run, CUPTI keeps their buffers, and the writer cannot release them; for
 * these the pool grows beyond the budget and shrinks later.
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
#define ACTIVITY_SPARE	     12 /* free buffers that the writer maintains */
#define ACTIVITY_OWN	     24 /* buffers not charged to the budget */
#define ACTIVITY_BACKLOG_MAX 48 /* unread buffers before requesting threads wait */
#define ACTIVITY_TIMEOUT_NS  1000000000

struct activity_buffer {
	struct xt_activity_header *header;
	uint8_t *data;
	atomic_bool is_empty;  /* its pages are released */
	bool is_budgeted;      /* its pages, less released ones, are charged to the budget */
	bool is_unbacked;      /* plain memory, not in the crash buffer */
	bool held;	       /* writer only: its rows wait for a flush */
	uint32_t peeked_bytes; /* writer only: bytes whose names were read while CUPTI had it */
};

extern atomic_uint_fast64_t activity_discarded; /* discard buffers that CUPTI filled */
extern atomic_uint_fast64_t activity_invalid;	/* completed twice, or with an impossible size */

/* For cuptiActivityRegisterCallbacks(). */
void activity_requested(uint8_t **buffer_out, size_t *bytes_out, size_t *max_records_out);
void activity_completed(void *context, uint32_t stream_id, uint8_t *buffer, size_t bytes,
			size_t valid_bytes);

/*
 * CUPTI returns all buffers to the last registered callback. A buffer that is not ours goes to this
 * callback of another tool; NULL: none.
 */
extern _Atomic(xt_cupti_buffer_completed) activity_foreign_completed;

/* In a forked child, where the buffers are the parent's: discards all records from now on. */
void activity_abandon(void);

#endif
