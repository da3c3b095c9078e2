/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a blocked thread waits for, and for which thread of which process. Sampler thread
 * only.
 */
#ifndef XT_SAMPLER_WAIT_TARGET_H
#define XT_SAMPLER_WAIT_TARGET_H

#include "sampler/sampling.h"
#include "sampler/stack_ids.h"

struct wait {
	enum xt_cpu_state state;
	uint32_t pid, tid; /* as in XT_CPU_SAMPLE_WAIT_PID and _TID; 0: unknown */
};

/*
 * proc_state is that of stat. role is that of the thread's Python frames. Reads the memory and the
 * descriptors of the process.
 */
void wait_target_find(struct sampling *sampling, struct sampled_process *process, char proc_state,
		      const struct thread_syscall *call, enum loader_role role, struct wait *out);

#endif
