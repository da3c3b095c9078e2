/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every launch reads and hardly anyone writes lies together, wherever it is defined: between two
 * launches a program has the caches to itself, and each line that is fetched anew is waited for.
 */
#ifndef XT_INJECT_HOT_STATE_H
#define XT_INJECT_HOT_STATE_H

#define HOT_STATE __attribute__((section("xt_hot_state")))

#endif
