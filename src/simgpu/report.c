/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports work whose place on the timeline is known to the ground truth and the tracer. Runs on the
 * thread that found the place.
 */
#include "simgpu/sim.h"

void sim_kernel_deliver(const struct sim_kernel_run *run)
{
	if (sim_truth_is_on())
		sim_truth_kernel(run);
	if (atomic_load_explicit(&sim_switches.activity_enabled[SIM_SWITCH_KERNEL],
				 memory_order_acquire))
		atomic_load_explicit(&sim_switches.tracer, memory_order_acquire)->kernel(run);
}

static void deliver(const struct sim_memory_run *run, bool is_set)
{
	enum sim_switch activity = is_set ? SIM_SWITCH_SET : SIM_SWITCH_COPY;
	const struct sim_tracer *tracer;

	if (sim_truth_is_on())
		(is_set ? sim_truth_set : sim_truth_copy)(run);
	if (!atomic_load_explicit(&sim_switches.activity_enabled[activity], memory_order_acquire))
		return;
	tracer = atomic_load_explicit(&sim_switches.tracer, memory_order_acquire);
	(is_set ? tracer->set : tracer->copy)(run);
}

/* One half after the other: out of the source, and into the destination. */
static void deliver_halves(const struct sim_memory_run *run)
{
	uint64_t middle_ns = run->span.start_ns + (run->span.end_ns - run->span.start_ns) / 2;
	struct sim_memory_run half = *run;

	half.copy_kind = XT_CUPTI_COPY_DTOH;
	half.place = run->source;
	half.span.end_ns = middle_ns;
	deliver(&half, false);
	half.copy_kind = XT_CUPTI_COPY_HTOD;
	half.place = run->destination;
	half.span = (struct sim_span){middle_ns, run->span.end_ns};
	deliver(&half, false);
}

void sim_transfer_deliver(const struct sim_memory_run *run, bool is_set)
{
	if (run->is_staged)
		deliver_halves(run);
	else
		deliver(run, is_set);
}
