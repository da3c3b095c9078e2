/* SPDX-License-Identifier: Apache-2.0 */
/* Shared code of the programs that measure the tracer's part of a launch. */
#ifndef XT_BENCH_TRACED_CALL_H
#define XT_BENCH_TRACED_CALL_H

#include "inject/capture/callbacks.h"
#include "inject/capture/stack_capture.h"
#include "inject/runtime/loader.h"
#include "inject/unwind/stack_walk.h"

/* Starts the capture of stacks. library: folder of a libunwind. Returns 0, or -1 and why not. */
static inline int open_stacks(const char *library, char *why, size_t why_bytes)
{
	loader_watch_begin();
	if (stack_walk_open(library, why, why_bytes) || stack_walk_begin())
		return -1;
	loader_watch_poll();
	stack_capture_audit_interval = 0;
	atomic_store(&callbacks_active, true);
	return 0;
}

/* Uses memory in an order that defeats the prefetcher. bytes: a power of two. */
static inline void use_memory(uint8_t *memory, uint32_t bytes)
{
	uint32_t lines = bytes / 64;

	for (uint32_t i = 0; i < lines; i++)
		memory[(i * 40503u & (lines - 1)) * 64]++;
	__asm__ volatile("" ::: "memory");
}

/* One launch, as CUPTI reports it to the tracer: its entry and its exit. */
static inline void traced_call(uint32_t correlation_id)
{
	int32_t result = 0;
	uint64_t slot = 0;
	struct cupti_callback_data data = {
		.site = XT_CUPTI_API_ENTER,
		.correlation_data = &slot,
		.correlation_id = correlation_id,
		.return_value = &result,
	};

	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, &data);
	data.site = XT_CUPTI_API_EXIT;
	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, &data);
}

#endif
