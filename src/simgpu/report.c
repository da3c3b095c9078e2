/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports work whose place on the timeline is known to the ground truth and the tracer. Runs on the
 * thread that found the place.
 */
#include "simgpu/sim.h"

bool sim_activity_is_on(enum sim_switch activity)
{
	return atomic_load_explicit(&sim_switches.activity_enabled[activity], memory_order_acquire);
}

static const struct sim_tracer *tracer(void)
{
	return atomic_load_explicit(&sim_switches.tracer, memory_order_acquire);
}

void sim_kernel_deliver(const struct sim_kernel_run *run)
{
	if (sim_truth_is_on())
		sim_truth_kernel(run);
	if (!run->is_unrecorded && sim_activity_is_on(SIM_SWITCH_KERNEL))
		tracer()->kernel(run);
}

void sim_graph_deliver(const struct sim_graph_run *run)
{
	if (sim_truth_is_on())
		sim_truth_graph(run);
	if (run->is_recorded)
		tracer()->graph(run);
}

static void deliver(const struct sim_memory_run *run, bool is_set)
{
	if (sim_truth_is_on())
		(is_set ? sim_truth_set : sim_truth_copy)(run);
	if (!run->is_unrecorded && sim_activity_is_on(is_set ? SIM_SWITCH_SET : SIM_SWITCH_COPY))
		(is_set ? tracer()->set : tracer()->copy)(run);
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
