/* SPDX-License-Identifier: Apache-2.0 */
/*
 * META of a CPU log: which process it is of, and how it was sampled. Sampler thread only.
 */
#ifndef XT_SAMPLER_PROCESS_FACTS_H
#define XT_SAMPLER_PROCESS_FACTS_H

#include "sampler/sampled.h"

/* The same for all logs of a recording. */
struct sampling_facts {
	unsigned hz;
	const char *why_no_perf;   /* NULL: perf is used */
	const char *why_no_memory; /* NULL: memory can be read */
	bool sees_kernel;	   /* perf samples come from inside the kernel, too */
};

/* The facts that exec changes: program, arguments, folder. Call it again after exec. */
void process_facts_program(const struct sampled_process *process);

/* Everything else. Call it once, while the process exists. */
void process_facts_process(const struct sampled_process *process,
			   const struct sampling_facts *sampling);

/* The interpreter, once it was found. */
void process_facts_python(const struct sampled_process *process);

/* Why there are no Python frames. Empty: there are. */
void process_facts_no_python(const struct sampled_process *process, const char *why);

/*
 * Whether the process is in another PID namespace than this one. Sets the id that it has there: the
 * injected library in it knows no other.
 */
bool process_facts_namespace(pid_t pid, pid_t *own_pid);

/* The id of a thread of such a process in its own namespace. */
pid_t process_facts_own_tid(pid_t pid, pid_t tid);

/* When a process or thread began. CLOCK_MONOTONIC ns, to half a tick. */
uint64_t process_facts_start_ns(uint64_t start_ticks);

/* The host's name as part of a file name. */
void process_facts_host(char *out, size_t out_bytes);

#endif
