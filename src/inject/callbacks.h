/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's callbacks at API calls: where the application's threads meet the tracer.
 */
#ifndef XT_INJECT_CALLBACKS_H
#define XT_INJECT_CALLBACKS_H

#include <stdatomic.h>
#include <stdint.h>

#include "inject/cupti.h"

/* The calls that are recorded. */
struct recorded_api {
	uint32_t domain; /* enum xt_cupti_domain */
	uint32_t cbid;
	uint32_t class; /* enum xt_api_class */
	const char *name;
};
extern const struct recorded_api recorded_apis[];
extern const uint32_t recorded_api_count;

/* Whether callbacks record; while it is false they return at once. */
extern atomic_bool callbacks_active;

/* Calls that were not recorded because the thread was inside a callback already. */
extern atomic_uint_fast64_t callbacks_reentered;

/* How often a memo hit is checked by a walk; 0: never. Set before callbacks are active. */
extern uint32_t callbacks_audit_interval;

/* What is given to cuptiSubscribe(): saves the caller's registers and goes on in C. */
void callback_entry(void *userdata, uint32_t domain, uint32_t cbid, const void *cbdata);

/* Enables the callbacks of all recorded calls. Returns how many could be enabled; old versions of
 * CUPTI do not know all. */
uint32_t callbacks_enable(void *subscriber);

#endif
