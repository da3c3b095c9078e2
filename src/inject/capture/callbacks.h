/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's callbacks at API calls: where the program's threads enter the tracer.
 */
#ifndef XT_INJECT_CALLBACKS_H
#define XT_INJECT_CALLBACKS_H

#include <stdatomic.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "inject/capture/thread_buffer.h"
#include "inject/cupti/cupti.h"
#include "inject/runtime/process.h"

/* While false, callbacks return at once. */
extern atomic_bool callbacks_active;

/* Calls not recorded because a signal handler made them inside a callback. */
extern atomic_uint_fast64_t callbacks_reentered;

/*
 * The log is closed; set before callbacks_active is cleared. Counts launches, copies and memsets
 * that return afterwards.
 */
extern atomic_bool callbacks_have_ended;
extern atomic_uint_fast64_t callbacks_after_end;

/* The callback for cuptiSubscribe(): saves the caller's registers, then calls C code. */
void callback_entry(void *userdata, uint32_t domain, uint32_t cbid, const void *cbdata);

#endif
