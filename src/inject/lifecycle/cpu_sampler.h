/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XTRACE_CPU: has the CPU sampled by a process of its own, 'xtrace sample'. It is no child of the
 * program, so that the program never waits for it, and it ends after the program.
 */
#ifndef XT_INJECT_CPU_SAMPLER_H
#define XT_INJECT_CPU_SAMPLER_H

#include "inject/lifecycle/config.h"

/*
 * Starts the sampler unless one samples this process into the same directory already, and waits
 * until it is ready. Prints why it cannot. Does nothing if config->cpu_hz is 0. In the thread that
 * starts the tracer. At the end of the process, the writer thread has the sampler complete its
 * logs, because a container may end with the process.
 */
void cpu_sampler_start(const struct config *config);

/* In a forked child: lets the sampler read its memory, too. */
void cpu_sampler_in_child(void);

#endif
