/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples what the threads of a program and of its descendants do, into one log for each process.
 * The work is done in a thread of its own, which reads /proc and the memory of the processes. It
 * never stops or signals them.
 */
#ifndef XT_SAMPLER_SAMPLER_H
#define XT_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SAMPLER_WHY_BYTES 256
#define SAMPLER_LOGS_MAX  1024 /* open at a time */

struct sampler;

struct sampler_options {
	pid_t root;
	bool is_running;      /* the root runs its program. Otherwise it has not called exec yet */
	unsigned hz;	      /* observations per second of each thread */
	const char *data_dir; /* for the logs */
	const char *library_dir; /* where libunwind may be */
	/* Called if the root's memory may not be read, so that it can permit it. NULL: none. */
	void (*ask_permission)(void);
};

/*
 * Begins to sample. Blocks signals in its thread. The options may be freed afterwards. Returns 0 or
 * -errno: -ENOSYS if the kernel has no /proc/PID/schedstat, -ESRCH if there is no such process,
 * -EADDRINUSE if another sampler has it. Stop it with sampler_stop().
 */
int sampler_start(struct sampler **out, const struct sampler_options *options);

struct sampler_result {
	uint32_t process_count, thread_count;
	uint64_t observation_count;
	uint64_t run_ns;	 /* CPU time of all threads that were observed */
	uint64_t lost_processes; /* not sampled, because log_limit CPU logs were open */
	uint32_t log_limit;
	int write_error;     /* -errno: the first error of writing a log; 0: none */
	bool is_untraceable; /* the program may not be traced: it is setuid, or not readable */
	/* Why the stacks of running native code are missing. Empty: they are not. */
	char why_no_perf[SAMPLER_WHY_BYTES];
	/* Why memory could not be read, for Python lines and for waits. Empty: it could. */
	char why_no_memory[SAMPLER_WHY_BYTES];
};

/* Why memory cannot be read: as in sampler_result. */
const char *sampler_why_no_memory(const struct sampler *sampler);

/* Becomes readable when the program asks the sampler to end. */
int sampler_end_descriptor(const struct sampler *sampler);

/* Stops, completes the logs, and frees the sampler. Accepts NULL. Processes may still run. */
void sampler_stop(struct sampler *sampler, struct sampler_result *result);

#endif
