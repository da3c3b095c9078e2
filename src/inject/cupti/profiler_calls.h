/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls by which a program limits recording to a range: cuProfilerStart(), cuProfilerStop(),
 * and their runtime API equivalents.
 */
#ifndef XT_INJECT_PROFILER_CALLS_H
#define XT_INJECT_PROFILER_CALLS_H

#include <stdint.h>

enum profiler_call { PROFILER_NONE, PROFILER_START, PROFILER_STOP };

/* Enables their callbacks. Once for each subscription, before calls are recorded. */
void profiler_calls_enable(void *subscriber);

/* Which of these calls it is, by domain << 16 | callback id. Any thread, in callbacks. */
enum profiler_call profiler_call_of(uint32_t api);

#endif
