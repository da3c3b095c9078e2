/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callback ids are found by name at start-up; all threads read them afterwards.
 */
#include "inject/cupti/profiler_calls.h"

#include <stddef.h>
#include <string.h>

#include "inject/cupti/api_table.h"
#include "inject/cupti/cupti.h"

#define CALLS_MAX 8

static struct {
	uint32_t api;
	enum profiler_call call;
} calls[CALLS_MAX];
static uint32_t call_count;

enum profiler_call profiler_call_of(uint32_t api)
{
	for (uint32_t i = 0; i < call_count; i++)
		if (calls[i].api == api)
			return calls[i].call;
	return PROFILER_NONE;
}

/* CUPTI appends a version to the names of runtime API functions. */
static enum profiler_call call_of_name(const char *name)
{
	static const struct {
		const char *beginning;
		enum profiler_call call;
	} names[] = {
		{"cuProfilerStart", PROFILER_START},
		{"cuProfilerStop", PROFILER_STOP},
		{"cudaProfilerStart", PROFILER_START},
		{"cudaProfilerStop", PROFILER_STOP},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(name, names[i].beginning, strlen(names[i].beginning)))
			return names[i].call;
	return PROFILER_NONE;
}

static void enable_in(void *subscriber, uint32_t domain)
{
	for (uint32_t cbid = 1; cbid < API_CBID_END && call_count < CALLS_MAX; cbid++) {
		const char *name = NULL;
		enum profiler_call call;

		if (cupti.cuptiGetCallbackName(domain, cbid, &name) != XT_CUPTI_SUCCESS || !name)
			continue;
		call = call_of_name(name);
		if (call == PROFILER_NONE ||
		    cupti.cuptiEnableCallback(1, subscriber, domain, cbid) != XT_CUPTI_SUCCESS)
			continue;
		calls[call_count].api = domain << 16 | cbid;
		calls[call_count++].call = call;
		if (domain == XT_CUPTI_CB_DOMAIN_DRIVER_API)
			api_uses[cbid] |= API_IS_PROFILER;
	}
}

void profiler_calls_enable(void *subscriber)
{
	if (!cupti.cuptiGetCallbackName)
		return;
	call_count = 0; /* a new subscription */
	enable_in(subscriber, XT_CUPTI_CB_DOMAIN_DRIVER_API);
	enable_in(subscriber, XT_CUPTI_CB_DOMAIN_RUNTIME_API);
}
