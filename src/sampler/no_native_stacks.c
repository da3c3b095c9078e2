/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces perf_events.c and remote_unwind.c on processors other than x86-64. perf does not sample
 * threads that run native code. A native stack is its innermost frame, marked as truncated. States,
 * waits and Python frames need neither.
 */
#include <errno.h>
#include <stdio.h>

#include "sampler/perf_events.h"
#include "sampler/remote_unwind.h"

static const char refusal[] = "they are sampled on x86-64 only";

int perf_events_open(struct perf_events **out, pid_t pid, double hz, char *why, size_t why_bytes)
{
	(void)pid, (void)hz;
	*out = NULL;
	snprintf(why, why_bytes, "%s", refusal);
	return -ENOSYS;
}

int perf_events_descriptor(const struct perf_events *events)
{
	(void)events;
	return -1;
}

void perf_events_drop_ended(struct perf_events *events)
{
	(void)events;
}

void perf_events_drain(struct perf_events *events,
		       void (*taken)(void *context, const struct perf_sample *sample),
		       void *context)
{
	(void)events, (void)taken, (void)context;
}

void perf_events_jitter(struct perf_events *events)
{
	(void)events;
}

void perf_events_close(struct perf_events *events)
{
	(void)events;
}

int remote_unwind_open(const char *library_dir, char *why, size_t why_bytes)
{
	(void)library_dir;
	snprintf(why, why_bytes, "%s", refusal);
	return -ENOSYS;
}

void remote_unwind(struct native_stack *out, struct process_modules *modules, pid_t pid,
		   const struct thread_registers *registers, const struct stack_copy *stack)
{
	(void)modules, (void)pid, (void)stack;
	out->frame_count = 0;
	out->flags = XT_STACK_TRUNCATED;
	if (!(registers->known & 1u << THREAD_RIP))
		return;
	out->stack_pointers[0] = registers->value[THREAD_RSP];
	out->frames[out->frame_count++] = (registers->value[THREAD_RIP] & XT_FRAME_VALUE_MASK) |
					  (uint64_t)XT_FRAME_EXACT << XT_FRAME_KIND_SHIFT;
}

void remote_unwind_close(void)
{
}
