/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that every launch reads and that rarely changes. It is placed together to touch few cache
 * lines: between two launches, the program has usually evicted them.
 */
#ifndef XT_INJECT_HOT_STATE_H
#define XT_INJECT_HOT_STATE_H

#define HOT_STATE __attribute__((section("xt_hot_state")))

/* Declares such data. The library does not export it, so its address need not be looked up. */
#define HOT_EXTERN extern __attribute__((visibility("hidden")))

#endif
