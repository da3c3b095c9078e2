/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of a log: monotonic nanoseconds, for host events and, through CUPTI's timestamp
 * callback, for GPU events. Any thread; no system call if the vDSO provides the clock.
 */
#ifndef XT_INJECT_CLOCK_H
#define XT_INJECT_CLOCK_H

#include "log/base/monotonic.h"

#endif
