/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool behind activity.h: what its callbacks need of it when no buffer is free.
 */
#ifndef XT_INJECT_ACTIVITY_POOL_H
#define XT_INJECT_ACTIVITY_POOL_H

#include "inject/activity.h"

/* A free buffer, now CUPTI's; NULL: none is free. Hot path. */
uint8_t *activity_take_free(void);

/* One that is made, or that the writer gives back in time; NULL: there is none. Cold path: makes
 * system calls, and may sleep. */
uint8_t *activity_make_or_wait(void);

/* Of the buffer with these data; NULL: it is none of ours. Hot path. */
struct xt_activity_header *activity_header_of(const uint8_t *data);

/* A buffer was completed: the writer has one more to give back. */
extern atomic_uint activity_behind;

#endif
