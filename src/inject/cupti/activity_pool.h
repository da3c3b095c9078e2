/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of activity buffers. activity.c calls the first functions in CUPTI's callbacks; the
 * writer thread calls the others.
 */
#ifndef XT_INJECT_ACTIVITY_POOL_H
#define XT_INJECT_ACTIVITY_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "inject/cupti/activity.h"

/* Takes a free buffer for CUPTI; NULL if none is free. Hot path. */
uint8_t *activity_take_free(void);

/*
 * Creates a buffer or waits for the writer to release one; NULL after a timeout. Cold path: makes
 * system calls and may sleep.
 */
uint8_t *activity_make_or_wait(void);

/* The header of the buffer with this data; NULL if it is not ours. Hot path. */
struct xt_activity_header *activity_header_of(const uint8_t *data);

/* Marks a buffer as completed by CUPTI. False if CUPTI does not own it. Hot path. */
bool activity_complete(struct xt_activity_header *header, size_t valid_bytes, uint64_t sequence);

/* Completed buffers that the writer has not released. */
extern atomic_uint activity_behind;

extern atomic_uint_fast64_t activity_waited_ns; /* time that threads waited for a release */

/* Whether CUPTI owns one of our buffers. */
bool activity_is_at_cupti(void);

/* Creates buffers until `count` are free or a limit is reached. Start-up and writer thread. */
void activity_refill(uint32_t count);

/* Releases the pages of buffers not needed since the last call. Writer thread, periodically. */
void activity_shrink(void);

/* The number of buffers with memory. */
uint32_t activity_buffer_count(void);

/*
 * Writer: the oldest completed buffer that is not held, or NULL. It is held and stays completed
 * until activity_release().
 */
struct activity_buffer *activity_take_completed(void);

/* Writer: the next buffer that CUPTI owns, or that is completed and not held. */
struct activity_buffer *activity_next_unread(uint32_t *index);

/* While the log cannot be written, no thread waits for a buffer. Writer thread. */
void activity_stall(bool is_stalled);

/* The number of buffers with records in plain memory. Writer thread. */
uint32_t activity_unbacked(void);

/* Writer: zeroes the used part and frees the buffer. */
void activity_release(struct activity_buffer *buffer);

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
