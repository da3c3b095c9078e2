/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Python frames cost a call: the callback on its own, called from within Python through ctypes, as
 * CUPTI would call it. For cost.py, which says how; no test.
 */
#include <stdio.h>

#include "inject/callbacks.h"
#include "inject/clock.h"
#include "inject/lane.h"
#include "inject/loader_watch.h"
#include "inject/python_runtime.h"
#include "inject/stack_walk.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int cost_begin(void);
EXPORTED void cost_take_python(int yes);
EXPORTED double cost_ns(unsigned call_count);
EXPORTED void cost_call(void);

static const struct python_runtime *found;

/* 0, or which step failed. */
int cost_begin(void)
{
	char why[256];

	loader_watch_begin();
	if (stack_walk_open("/nonexistent", why, sizeof(why)))
		return 1;
	loader_watch_narrow();
	stack_walk_close();
	loader_watch_narrow();
	if (stack_walk_open("/nonexistent", why, sizeof(why)) || stack_walk_begin())
		return 2;
	loader_watch_narrow();
	if (!loader_watch_end())
		return 3;
	python_wanted = true;
	python_find();
	found = python_runtime;
	atomic_store(&callbacks_active, true);
	return found ? 0 : 4;
}

void cost_take_python(int yes)
{
	python_runtime = yes ? found : NULL;
}

/* One call, entry and exit. */
void cost_call(void)
{
	static uint32_t correlation_id;
	int32_t result = 0;
	uint64_t slot = 0;
	struct cupti_callback_data data = {
		.site = XT_CUPTI_API_ENTER,
		.correlation_data = &slot,
		.correlation_id = ++correlation_id,
		.return_value = &result,
	};

	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, &data);
	data.site = XT_CUPTI_API_EXIT;
	callback_entry(NULL, XT_CUPTI_CB_DOMAIN_DRIVER_API, XT_CUPTI_CBID_cuLaunchKernel, &data);
	ring_free(thread_lane, ring_written(thread_lane));
}

/* The least of many short runs: others on the machine make single ones longer. */
double cost_ns(unsigned call_count)
{
	const unsigned runs = 600;
	double least_ns = 0;

	for (unsigned i = 0; i < 1000; i++)
		cost_call();
	for (unsigned run = 0; run < runs; run++) {
		uint64_t start_ns = monotonic_ns();
		double ns;

		for (unsigned i = 0; i < call_count / runs; i++)
			cost_call();
		ns = (double)(monotonic_ns() - start_ns) / (call_count / runs);
		if (!run || ns < least_ns)
			least_ns = ns;
	}
	return least_ns;
}
