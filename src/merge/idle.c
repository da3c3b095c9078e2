/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gaps on one device, and why they are.
 */
#include "merge/idle.h"

const char *const idle_labels[IDLE_CLASSES] = {
	[IDLE_LAUNCH_LATE] = "[idle: launch late (CPU busy)]",
	[IDLE_CPU_IN_SYNC] = "[idle: CPU blocked in sync]",
	[IDLE_ON_COPY] = "[idle: waiting on a copy]",
	[IDLE_ON_STREAM] = "[idle: waiting for another stream]",
	[IDLE_NOT_SUBMITTED] = "[idle: nothing submitted]",
	[IDLE_NOT_STARTED] = "[idle: submitted, not started]",
	[IDLE_CALL_UNKNOWN] = "[idle: call unknown]",
};

static uint64_t clamp(uint64_t time_ns, uint64_t from_ns, uint64_t until_ns)
{
	if (time_ns < from_ns)
		return from_ns;
	return time_ns > until_ns ? until_ns : time_ns;
}

/* The thread ran its own code in [from_ns, until_ns). */
static enum idle_class own_code(uint64_t from_ns, uint64_t until_ns)
{
	return until_ns - from_ns > IDLE_LATE_NS ? IDLE_NOT_SUBMITTED : IDLE_LAUNCH_LATE;
}

/* The work was submitted before the gap: something on the GPU held it. */
static enum idle_class held_by(const struct idle *idle, const struct idle_work *work)
{
	if (idle->last_is_copy)
		return IDLE_ON_COPY;
	return idle->last_stream != work->stream ? IDLE_ON_STREAM : IDLE_NOT_STARTED;
}

/*
 * The work was submitted in the gap: the gap is cut where the thread began and ended its last
 * wait, where its last call returned, and where it entered the one that submitted the work.
 */
static void cut_at_calls(uint64_t from_ns, const struct idle_work *work,
			 uint64_t pieces_ns[IDLE_CLASSES])
{
	uint64_t enter_ns = clamp(work->enter_ns, from_ns, work->start_ns);
	uint64_t wait_ns = clamp(work->wait_enter_ns, from_ns, enter_ns);
	uint64_t waited_ns = clamp(work->wait_exit_ns, wait_ns, enter_ns);
	uint64_t returned_ns = clamp(work->previous_exit_ns, waited_ns, enter_ns);

	if (waited_ns > wait_ns)
		pieces_ns[own_code(from_ns, wait_ns)] += wait_ns - from_ns;
	else
		wait_ns = waited_ns = from_ns;
	pieces_ns[work->waited_for_copy ? IDLE_ON_COPY : IDLE_CPU_IN_SYNC] += waited_ns - wait_ns;
	if (returned_ns < waited_ns)
		returned_ns = waited_ns;
	pieces_ns[IDLE_LAUNCH_LATE] += returned_ns - waited_ns;
	pieces_ns[own_code(returned_ns, enter_ns)] += enter_ns - returned_ns;
	pieces_ns[IDLE_LAUNCH_LATE] += work->start_ns - enter_ns;
}

void idle_add(struct idle *idle, const struct idle_work *work, uint64_t pieces_ns[IDLE_CLASSES])
{
	uint64_t from_ns = idle->busy_until_ns;

	if (idle->has_run && work->start_ns > from_ns) {
		if (!work->has_call)
			pieces_ns[IDLE_CALL_UNKNOWN] += work->start_ns - from_ns;
		else if (work->enter_ns <= from_ns)
			pieces_ns[held_by(idle, work)] += work->start_ns - from_ns;
		else
			cut_at_calls(from_ns, work, pieces_ns);
	}
	if (idle->has_run && work->end_ns <= from_ns)
		return;
	idle->has_run = true;
	idle->busy_until_ns = work->end_ns;
	idle->last_stream = work->stream;
	idle->last_is_copy = work->is_copy;
}
