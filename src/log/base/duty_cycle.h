/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The setting of a duty cycle (--duty): a window of recording in each period, at a random time.
 */
#ifndef XT_LOG_DUTY_CYCLE_H
#define XT_LOG_DUTY_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#define XT_DUTY_WINDOW_MIN UINT64_C(10000000) /* ns */

#define XT_META_DUTY_WINDOW "duty.window_ns" /* keys of META */
#define XT_META_DUTY_PERIOD "duty.period_ns"

struct xt_duty_cycle {
	uint64_t window_ns; /* 0: no duty cycle */
	uint64_t period_ns; /* at least twice the window */
};

/*
 * Parses WINDOW/PERIOD, two times with units, such as 1s/60s. False if malformed, if the window is
 * shorter than XT_DUTY_WINDOW_MIN, or if the period is shorter than two windows. Never allocates;
 * any thread.
 */
bool xt_duty_cycle_parse(const char *text, struct xt_duty_cycle *cycle);

#endif
