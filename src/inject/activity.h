/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's activity buffers: a pool in the spool. The two callbacks that CUPTI makes, on threads
 * of the application or of its own, only change the state of a buffer; the writer thread reads
 * the records.
 */
#ifndef XT_INJECT_ACTIVITY_H
#define XT_INJECT_ACTIVITY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "xtrace/log_format.h"

#define ACTIVITY_BUFFERS_MAX 1024
#define ACTIVITY_DATA_BYTES  (128u << 10)
#define ACTIVITY_SPARE	     12 /* free buffers that the writer keeps ready */

struct activity_buffer {
	struct xt_activity_header *header;
	uint8_t *data;
	bool held;	       /* the writer's: its records were taken, it waits for the flush */
	uint32_t peeked_bytes; /* the writer's: whose names it has seen while CUPTI had it */
};

extern atomic_uint_fast64_t activity_discarded; /* buffers for which there was no room */

/* For cuptiActivityRegisterCallbacks(). */
void activity_requested(uint8_t **buffer_out, size_t *bytes_out, size_t *max_records_out);
void activity_completed(void *context, uint32_t stream_id, uint8_t *buffer, size_t bytes,
			size_t valid_bytes);

/* Whether CUPTI has a buffer of ours. */
bool activity_is_at_cupti(void);

/* In a forked child, where the areas are its parent's: from now on buffers are discarded. */
void activity_abandon(void);

/* Makes buffers until `count` are free or no more can be had. Start-up and writer thread. */
void activity_stock(uint32_t count);

/* The writer: the longest completed buffer that is not held, or NULL. It is held, and stays
 * completed, until it is handed back. */
struct activity_buffer *activity_take_completed(void);

/* The writer: the next buffer from *index on that CUPTI writes into, or NULL. *index begins at 0. */
struct activity_buffer *activity_next_at_cupti(uint32_t *index);

/* The writer: zeroes what was used and makes the buffer free again. */
void activity_hand_back(struct activity_buffer *buffer);

#endif
