/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's callbacks at API calls: where the application's threads meet the tracer.
 */
#ifndef XT_INJECT_CALLBACKS_H
#define XT_INJECT_CALLBACKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inject/cupti/cupti.h"

/* Whether callbacks record; while it is false they return at once. */
extern atomic_bool callbacks_active;

/* Calls that were not recorded because the thread was inside a callback already. */
extern atomic_uint_fast64_t callbacks_reentered;

/* Recording has ended with the log: set before callbacks_active is not. Launches, copies and
 * sets that return from then on. */
extern atomic_bool callbacks_have_ended;
extern atomic_uint_fast64_t callbacks_after_end;

/* What is given to cuptiSubscribe(): saves the caller's registers and goes on in C. */
void callback_entry(void *userdata, uint32_t domain, uint32_t cbid, const void *cbdata);

#endif
