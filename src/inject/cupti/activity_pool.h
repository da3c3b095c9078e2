/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool behind activity.h: what its callbacks need of it when no buffer is free.
 */
#ifndef XT_INJECT_ACTIVITY_POOL_H
#define XT_INJECT_ACTIVITY_POOL_H

#include "inject/cupti/activity.h"

/* A free buffer, now CUPTI's; NULL: none is free. Hot path. */
uint8_t *activity_take_free(void);

/* One that is made, or that the writer gives back in time; NULL: there is none. Cold path: makes
 * system calls, and may sleep. */
uint8_t *activity_make_or_wait(void);

/* Of the buffer with these data; NULL: it is none of ours. Hot path. */
struct xt_activity_header *activity_header_of(const uint8_t *data);

/* CUPTI gives it back, with so many bytes in it. False: it does not have it. Hot path. */
bool activity_complete(struct xt_activity_header *header, size_t valid_bytes, uint64_t sequence);

/* Buffers that were completed, and that the writer has not given back. */
extern atomic_uint activity_behind;

extern atomic_uint_fast64_t activity_waited_ns; /* for one that the writer gives back */

/* Whether CUPTI has a buffer of ours. */
bool activity_is_at_cupti(void);

/* Makes buffers until `count` are free or no more can be had. Start-up and writer thread. */
void activity_refill(uint32_t count);

/* Gives back the memory of buffers that were not needed since the last time. Writer thread, now and
 * then. */
void activity_shrink(void);

/* How many buffers have memory. */
uint32_t activity_buffer_count(void);

/* The writer: the longest completed buffer that is not held, or NULL. It is held, and stays
 * completed, until it is handed back. */
struct activity_buffer *activity_take_completed(void);

/* The writer: the next buffer from *index on that CUPTI writes into, or NULL. *index begins at 0. */
struct activity_buffer *activity_next_at_cupti(uint32_t *index);

/* As activity_next_at_cupti(), and also completed buffers that are not held. */
struct activity_buffer *activity_next_unread(uint32_t *index);

/* The log cannot be written, or can again: nobody waits for a buffer meanwhile. Writer thread. */
void activity_stall(bool is_stalled);

/* Buffers with records that are not in the crash buffer. Writer thread. */
uint32_t activity_unbacked(void);

/* The writer: zeroes what was used and makes the buffer free again. */
void activity_release(struct activity_buffer *buffer);

#endif
