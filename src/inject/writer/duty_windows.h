/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when the windows of a duty cycle (--duty) begin.
 *
 * The time between two windows is random, so that no rhythm of the program matches theirs, and its
 * mean is that of the setting. The process is stationary from the first moment on: each moment has
 * the same chance to be recorded. Writer thread only.
 */
#ifndef XT_INJECT_DUTY_WINDOWS_H
#define XT_INJECT_DUTY_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "log/base/duty_cycle.h"

/* Once, before the writer thread starts. The cycle is on, but waits, if it has windows. */
void duty_windows_begin(const struct xt_duty_cycle *cycle);

/* window_ns is 0 if the process has no duty cycle. Valid until the process ends. */
const struct xt_duty_cycle *duty_windows_cycle(void);

/* turn_on(): it waits for duty_windows_start(). No window is due before. */
void duty_windows_turn_on(void);
bool duty_windows_wait(void);
void duty_windows_start(uint64_t now_ns);
void duty_windows_stop(void);
bool duty_windows_are_on(void);

/* True once for each window, when it is due: then record for *duration_ns. */
bool duty_windows_next(uint64_t now_ns, uint64_t *duration_ns);

#endif
