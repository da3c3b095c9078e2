/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls by which programs say what of them is to be recorded: cuProfilerStart(),
 * cuProfilerStop(), and the runtime API's.
 */
#ifndef XT_INJECT_PROFILER_CALLS_H
#define XT_INJECT_PROFILER_CALLS_H

#include <stdint.h>

enum profiler_call { PROFILER_NONE, PROFILER_START, PROFILER_STOP };

/* Has CUPTI call back at them. Once, at start-up; without it there are none. */
void profiler_calls_enable(void *subscriber);

/* Which one it is, by domain << 16 | callback id. Any thread, in callbacks. */
enum profiler_call profiler_call_of(uint32_t api);

#endif
