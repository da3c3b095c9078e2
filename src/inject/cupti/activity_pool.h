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

#endif
