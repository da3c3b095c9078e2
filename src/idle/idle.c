/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gaps of one device and their causes.
 */
#include "idle/idle.h"

#include <string.h>

const enum idle_class idle_order[IDLE_CLASSES] = {
	IDLE_CALL_UNKNOWN, IDLE_ON_STREAM,     IDLE_NOT_STARTED, IDLE_ON_COPY,
	IDLE_CPU_IN_SYNC,  IDLE_NOT_SUBMITTED, IDLE_LAUNCH_LATE,
};

const char *const idle_labels[IDLE_CLASSES] = {
	[IDLE_LAUNCH_LATE] = "[idle: launch late (CPU busy)]",
	[IDLE_CPU_IN_SYNC] = "[idle: CPU blocked in sync]",
	[IDLE_ON_COPY] = "[idle: waiting on a copy]",
	[IDLE_ON_STREAM] = "[idle: waiting for another stream]",
	[IDLE_NOT_SUBMITTED] = "[idle: nothing submitted]",
	[IDLE_NOT_STARTED] = "[idle: submitted, not started]",
	[IDLE_CALL_UNKNOWN] = "[idle: call unknown]",
};

const enum idle_class idle_class_of_thread[THREAD_STATES] = {
	[THREAD_IN_SYNC] = IDLE_CPU_IN_SYNC,
	[THREAD_IN_COPY] = IDLE_ON_COPY,
	[THREAD_IN_OWN_CODE] = IDLE_NOT_SUBMITTED,
	[THREAD_BUSY] = IDLE_LAUNCH_LATE,
};

const char *idle_class_text(enum idle_class class, size_t *length)
{
	const char *text = idle_labels[class] + strlen("[idle: ");

	*length = strcspn(text, "]");
	return text;
}

char *idle_class_name(enum idle_class class)
{
	size_t length;
	const char *text = idle_class_text(class, &length);

	return strndup(text, length);
}

/* The work was submitted before the gap, so something on the GPU delayed it. */
static enum idle_class class_of_gpu_wait(const struct idle *idle, const struct idle_work *work)
{
	if (idle->last_is_copy)
		return IDLE_ON_COPY;
	return idle->last_stream != work->stream ? IDLE_ON_STREAM : IDLE_NOT_STARTED;
}

/* The work was submitted during the gap, so what its thread did until then is the cause. */
static void classify_by_thread(uint64_t from_ns, const struct idle_work *work,
			       uint64_t pieces_ns[IDLE_CLASSES])
{
	uint64_t enter_ns = work->enter_ns < work->start_ns ? work->enter_ns : work->start_ns;
	uint64_t spent_ns[THREAD_STATES] = {0};

	thread_timeline_spent(work->thread, from_ns, enter_ns, spent_ns);
	for (int state = 0; state < THREAD_STATES; state++)
		pieces_ns[idle_class_of_thread[state]] += spent_ns[state];
	pieces_ns[IDLE_LAUNCH_LATE] += work->start_ns - enter_ns;
}

void idle_add(struct idle *idle, const struct idle_work *work, uint64_t pieces_ns[IDLE_CLASSES])
{
	uint64_t from_ns = idle->busy_until_ns;

	if (idle->has_run && work->start_ns > from_ns) {
		if (!work->has_call)
			pieces_ns[IDLE_CALL_UNKNOWN] += work->start_ns - from_ns;
		else if (work->enter_ns <= from_ns)
			pieces_ns[class_of_gpu_wait(idle, work)] += work->start_ns - from_ns;
		else
			classify_by_thread(from_ns, work, pieces_ns);
	}
	if (idle->has_run && work->end_ns <= from_ns)
		return;
	idle->has_run = true;
	idle->busy_until_ns = work->end_ns;
	idle->last_stream = work->stream;
	idle->last_is_copy = work->is_copy;
	idle->last_enter_ns = work->enter_ns;
	idle->last_thread = work->thread;
}

bool idle_lacks_work(const struct idle *idle, const struct idle_work *work)
{
	bool is_of_thread = idle->last_thread && idle->last_thread == work->thread;
	uint64_t after_ns = is_of_thread ? idle->last_enter_ns : idle->busy_until_ns;

	/*
	 * If the call of this work is unknown, records were lost, perhaps also those of work in the
	 * gap.
	 */
	return !work->has_call || (work->since_ns < UINT32_MAX && work->enter_ns > work->since_ns &&
				   work->enter_ns - work->since_ns > after_ns);
}
