/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link to the tracer half: its switches, correlation ids, and the callbacks of the resource
 * domain. Runs on the application's threads.
 */
#include <unistd.h>

#include "simgpu/sim.h"

struct sim_switches sim_switches = {.device_graphs_bytes = SIM_DEVICE_GRAPHS_BYTES,
				    .kinds_lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic uint32_t correlation_count;

/* Only a call that is reported takes an id, as with a real CUPTI. */
uint32_t sim_correlation_id(void)
{
	struct sim_call *call = sim_thread()->call;

	if (call->correlation_id)
		return call->correlation_id;
	call->correlation_id = sim_thread()->frozen_id;
	if (!call->correlation_id)
		call->correlation_id =
			1 + atomic_fetch_add_explicit(&correlation_count, 1, memory_order_relaxed);
	return call->correlation_id;
}

void sim_restart_correlation_ids(void)
{
	atomic_store_explicit(&correlation_count, 0, memory_order_relaxed);
}

uint32_t sim_correlation_id_borrowed(void)
{
	const struct sim_call *call = sim_thread()->call;

	return call->correlation_id
		       ? call->correlation_id
		       : atomic_load_explicit(&correlation_count, memory_order_relaxed);
}

/* CUPTI before 13.0.1 holds these two in the other order when it disables kernel records. */
void sim_hold_kinds(void)
{
	if (!atomic_load(&sim_switches.deadlocks) ||
	    !atomic_load(&sim_switches.activity_enabled[SIM_SWITCH_KERNEL]))
		return;
	atomic_fetch_add(&sim_switches.kinds_waiter_count, 1);
	usleep(100);
	pthread_mutex_lock(&sim_switches.kinds_lock);
	pthread_mutex_unlock(&sim_switches.kinds_lock);
	atomic_fetch_sub(&sim_switches.kinds_waiter_count, 1);
}

void sim_resource_notify(uint32_t cbid, CUcontext context, CUstream stream, void *descriptor)
{
	const struct cupti_resource_data data = {
		.context = context,
		.stream = stream,
		.descriptor = descriptor,
	};
	struct sim_thread *thread = sim_thread();
	const struct sim_tracer *tracer;

	if (!atomic_load_explicit(&sim_switches.resource_enabled[cbid], memory_order_acquire))
		return;
	tracer = atomic_load_explicit(&sim_switches.tracer, memory_order_acquire);
	thread->is_in_callback = true;
	tracer->resource(cbid, &data);
	thread->is_in_callback = false;
}
