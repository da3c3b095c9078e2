/* SPDX-License-Identifier: Apache-2.0 */
/* One launch, as CUPTI reports it to the tracer: its entry and its exit. */
#ifndef XT_BENCH_TRACED_CALL_H
#define XT_BENCH_TRACED_CALL_H

#include "inject/capture/callbacks.h"

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
