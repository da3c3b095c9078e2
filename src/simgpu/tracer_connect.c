/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects the tracer half to the driver half when the library is loaded. Resets the tracer half in
 * a forked child and in cuptiFinalize().
 */
#include <pthread.h>

#include "simgpu/tracer.h"

static const struct sim_tracer tracer = {
	.api = tracer_on_api,
	.resource = tracer_on_resource,
	.kernel = tracer_on_kernel,
	.copy = tracer_on_copy,
	.set = tracer_on_set,
	.graph = tracer_on_graph,
	.allocation = tracer_on_allocation,
};

/* A forked child has no worker, and its parent's requests do not apply to it. */
static void reset_in_child(void)
{
	tracer_callbacks_reset();
	tracer_switches_reset();
	tracer_records_reset();
	tracer_buffers_reset();
}

__attribute__((constructor)) static void start(void)
{
	tracer_seam_connect(&tracer);
	pthread_atfork(NULL, NULL, reset_in_child);
}

/*
 * Turns everything off, including the subscription. Correlation ids restart at 1. Both are as with
 * a real CUPTI.
 */
SIM_EXPORT int cuptiFinalize(void)
{
	int result = tracer_enter(__func__);

	if (result)
		return result;
	tracer_callbacks_reset();
	tracer_switches_reset();
	tracer_records_reset();
	tracer_seam()->restart_correlation_ids();
	return XT_CUPTI_SUCCESS;
}
