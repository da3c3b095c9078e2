/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains why perf_event_open failed, and how to allow it. Any thread.
 */
#ifndef XT_SAMPLER_PERF_REFUSAL_H
#define XT_SAMPLER_PERF_REFUSAL_H

#include <stddef.h>

/* error: errno of perf_event_open; cpu_count: events that are needed. */
void perf_refusal_explain(int error, size_t cpu_count, char *why, size_t why_bytes);

#endif
