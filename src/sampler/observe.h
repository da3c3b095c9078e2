/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observes threads: what each does now, and what the kernel's samples say that it did. Sampler
 * thread only.
 */
#ifndef XT_SAMPLER_OBSERVE_H
#define XT_SAMPLER_OBSERVE_H

#include "sampler/perf_events.h"
#include "sampler/sampling.h"

struct wait {
	enum xt_cpu_state state;
	uint32_t pid, tid; /* as in XT_CPU_SAMPLE_WAIT_PID and _TID; 0: unknown */
};

/* Observes a thread. Sets has_ended if it is gone. */
void observe_thread(struct sampling *sampling, struct sampled_process *process,
		    struct sampled_thread *thread);

/* Takes a sample of the kernel. Reads the Python frames at once. context: struct sampling. */
void observe_sample(void *context, const struct perf_sample *sample);

#endif
