/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's knowledge of processes and threads. Sampler thread only.
 */
#ifndef XT_SAMPLER_SAMPLED_H
#define XT_SAMPLER_SAMPLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/cpu_log.h"
#include "sampler/process_modules.h"
#include "sampler/process_read.h"
#include "sampler/python_process.h"
#include "sampler/wait_class.h"

/* Samples of a thread between two observations. If there are more, some chosen at random stay. */
#define HELD_SAMPLES_MAX 4

struct held_sample {
	uint64_t time_ns;
	uint32_t stack; /* XT_STACK_ID */
	uint8_t flags;	/* enum xt_cpu_flag */
	uint8_t state;	/* enum xt_cpu_state */
};

struct sampled_thread {
	pid_t tid;	 /* in the sampler's PID namespace */
	pid_t log_tid;	 /* in the process's own */
	uint32_t id;	 /* XT_THREAD_ID; 0: no row yet */
	bool is_known;	 /* it was observed */
	bool is_blocked; /* at the last observation */
	bool has_ended;
	bool is_listed; /* in the last listing of /proc/PID/task */
	/* To look again for whom a blocked thread waits: */
	struct thread_syscall call;
	char proc_state;
	uint8_t role;	       /* enum loader_role */
	uint8_t state;	       /* enum xt_cpu_state of the last observation */
	uint32_t quiet_rounds; /* since it last ran */
	uint64_t start_ticks, start_ns;
	char name[THREAD_NAME_BYTES];
	struct thread_files files;
	struct thread_counts counts; /* at the last observation */
	uint64_t total_run_ns;	     /* what sampling.total_run_ns has of this thread */
	uint64_t scanned_run_ns;     /* CPU time at the last search for its children */
	uint64_t fault_count;
	/* Since the newest sample of the kernel: */
	uint64_t unsampled_ns;	       /* CPU time */
	uint64_t sampled_kernel_ticks; /* thread_stat.kernel_ticks then */
	struct held_sample held[HELD_SAMPLES_MAX];
	uint32_t held_count, held_seen;
	struct held_sample fault; /* of its last sampled page fault; time 0: none since a row */
	struct thread_rows rows;
};

/* Counts for the account of a log. */
struct process_counts {
	uint64_t threads, observations, perf_samples, ended_threads, switched, python_reads,
		python_changed;
};

struct sampled_process {
	pid_t pid;     /* in the sampler's PID namespace */
	pid_t log_pid; /* in its own */
	pid_t parent;  /* when it was found */
	bool is_in_other_namespace;
	bool awaits_exec;  /* it is still xtrace */
	bool has_new_main; /* another thread may have become the main thread, with its id */
	bool has_ended;
	bool has_past;	       /* it ran before start_ns */
	bool has_no_log;       /* more processes than logs, or is_foreign */
	bool is_foreign;       /* another sampler has it, or it is a sampler */
	int claim;	       /* descriptor; -1: none */
	bool is_loader_worker; /* of a PyTorch DataLoader */
	uint64_t start_ticks, stack_start;
	uint64_t start_ns;		 /* of the process, or of sampling if that is later */
	struct sampled_thread **threads; /* by tid */
	size_t thread_count, thread_capacity;
	struct process_modules modules;
	uint64_t modules_due_ns, modules_wait_ns; /* when to look for new ones, and then again */
	struct python_process *python;		  /* NULL: none found */
	bool is_python_unsupported;
	bool is_python_fresh; /* its threads are known, in this round */
	struct pipe_table pipes;
	struct cpu_log *log;
	struct process_counts counts;
};

struct process_table {
	struct sampled_process **list; /* by pid */
	size_t count, capacity;
};

/* NULL if the table has no such process. */
struct sampled_process *process_table_find(const struct process_table *table, pid_t pid);

/* Inserts a process that is not in the table. Returns 0 or -ENOMEM. */
int process_table_add(struct process_table *table, struct sampled_process *process);
void process_table_remove(struct process_table *table, struct sampled_process *process);

struct sampled_thread *sampled_thread_find(const struct sampled_process *process, pid_t tid);

/* The thread with this id in the process's own PID namespace, or NULL. */
struct sampled_thread *sampled_thread_find_logged(const struct sampled_process *process,
						  pid_t log_tid);

/* The main thread, or NULL. */
struct sampled_thread *sampled_process_main(const struct sampled_process *process);

#endif
