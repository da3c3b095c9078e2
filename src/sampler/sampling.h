/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of one recording that the parts of the sampler share, and the life of its processes and
 * threads. Sampler thread only.
 */
#ifndef XT_SAMPLER_SAMPLING_H
#define XT_SAMPLER_SAMPLING_H

#include <stdint.h>

#include "sampler/claims.h"
#include "sampler/pair_stacks.h"
#include "sampler/process_facts.h"
#include "sampler/sampled.h"

#define STACK_COPY_BYTES (64u << 10)

#define ENDED_PROCESSES 256

/* A process whose log was closed. The pid alone may be that of another process by now. */
struct ended_process {
	pid_t pid;
	uint64_t start_ticks;
};

struct sampling {
	struct process_table processes;
	struct sampling_facts facts;
	struct cpu_log_place place; /* without the pid */
	struct claims claims;
	struct cpu_log_tables tables;
	pid_t root;
	pid_t own_pid; /* not sampled */
	bool is_late;  /* the root ran before start_ns */
	uint64_t start_ns, period_ns;
	bool sees_kernel;	  /* samples come from inside the kernel, too */
	bool is_root_untraceable; /* the kernel hides what it executes */
	bool has_root_sample;	  /* a new one of the first thread came since this was cleared */
	int descriptor_budget;
	uint64_t random;
	uint32_t log_count, log_limit; /* open logs */
	uint32_t total_logs;
	int write_error;			     /* the first one of a log; 0: none */
	struct ended_process ended[ENDED_PROCESSES]; /* a ring */
	uint32_t ended_count;
	uint64_t lost_observations;		    /* because of an error such as EMFILE */
	uint64_t lost_processes;		    /* without a log, because of log_limit */
	uint64_t total_run_ns;			    /* also of threads without a row */
	uint64_t total_observations, total_threads; /* of all processes */
	/* Too large for the stack; valid during one observation. */
	struct native_stack native;
	struct python_stack python;
	struct paired_stacks paired;
	uint8_t stack_copy[STACK_COPY_BYTES];
};

uint64_t sampling_now_ns(void);

/* A random number below `limit`, which is not 0. */
uint32_t sampling_random(struct sampling *sampling, uint32_t limit);

/* Adds a process unless it is known, gone, this one or its parent. Returns it, or NULL. */
struct sampled_process *sampling_add_process(struct sampling *sampling, pid_t pid);

/* Writes the rest of its log and frees it. The process is no longer in the table then. */
void sampling_end_process(struct sampling *sampling, struct sampled_process *process);

/*
 * Finds threads that are new, and ends those that are gone. False if the list could not be read,
 * although the process may exist.
 */
bool sampling_list_threads(struct sampling *sampling, struct sampled_process *process);

/* Adds a thread that is not known. NULL if out of memory. */
struct sampled_thread *sampling_add_thread(struct sampling *sampling,
					   struct sampled_process *process, pid_t tid);

/* Claims a process for this sampler. False if another one has it. */
bool sampling_claim(struct sampling *sampling, struct sampled_process *process);

/* The log of the process. NULL if it gets none. */
struct cpu_log *sampling_log(struct sampling *sampling, struct sampled_process *process);

/* Notes the result of a write of a log: 0 or -errno. */
void sampling_note_write(struct sampling *sampling, int error);

/*
 * Detects by stat that the process called exec, and then forgets its old program and prepares the
 * new one. False while it is still xtrace.
 */
bool sampling_check_program(struct sampling *sampling, struct sampled_process *process,
			    const struct thread_stat *stat, uint64_t now_ns);

/* Looks for new modules and a Python interpreter, if it is time to. */
void sampling_prepare(struct sampled_process *process, uint64_t now_ns);

#endif
