/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the threads of a recorded program: xtrace record --cpu.
 */
#ifndef XTRACE_SAMPLE_H
#define XTRACE_SAMPLE_H

#include <sys/types.h>

#include "program.h"
#include "sampler/sampler.h"

#define CPU_SAMPLING_HZ	    "99" /* no divisor of the usual periods of programs */
#define CPU_SAMPLING_HZ_MAX 1000

struct cpu_sampling {
	/* Set by the caller: */
	unsigned hz;		      /* 0: off */
	bool is_running;	      /* the program runs already */
	void (*ask_permission)(void); /* as in sampler_options */
	const struct install_paths *paths;
	char *const *data_dir;
	/* Set by cpu_sampling_start() and cpu_sampling_stop(): */
	struct sampler *sampler;
	struct sampler_result result;
	uint64_t cpu_ns; /* of the program and the descendants that it waited for */
	int error;	 /* -errno: the sampler could not start */
};

/* For child_care.forked. context: struct cpu_sampling. The program runs even if this fails. */
void cpu_sampling_start(void *context, pid_t pid);

/* Completes the logs. Does nothing if sampling is off. */
void cpu_sampling_stop(struct cpu_sampling *sampling);

/* Prints what was sampled of the program, and what is missing. Nothing if sampling is off. */
void cpu_sampling_report(const struct cpu_sampling *sampling, const char *program);

#endif
