/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of one recording that the parts of the sampler share, and the life of its processes and
 * threads: how they are found, claimed, described in their log, and ended. Sampler thread only.
 */
#ifndef XT_SAMPLER_SAMPLING_H
#define XT_SAMPLER_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/cpu_log.h"
#include "sampler/process_modules.h"
#include "sampler/process_read.h"
#include "sampler/python_process.h"
#include "sampler/wait_class.h"

/* One sampler alone works for each process and trace directory. */
struct claims {
	int epoll_fd; /* of the sockets of all claims; -1: none can be made */
	const char *data_dir;
};

/* data_dir must outlive the claims. */
void claims_open(struct claims *claims, const char *data_dir);
void claims_close(struct claims *claims);

/* Answers the processes that asked who samples them. True if one asked this sampler to end. */
bool claims_answer(struct claims *claims);

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
	LIST(struct sampled_process *); /* by pid */
};

/* NULL if the table has no such process. */
struct sampled_process *process_table_find(const struct process_table *table, pid_t pid);

struct sampled_thread *sampled_thread_find(const struct sampled_process *process, pid_t tid);

/* The thread with this id in the process's own PID namespace, or NULL. */
struct sampled_thread *sampled_thread_find_logged(const struct sampled_process *process,
						  pid_t log_tid);

/* META of all logs of a recording. */
struct sampling_facts {
	unsigned hz;
	const char *why_no_perf;   /* NULL: perf is used */
	const char *why_no_memory; /* NULL: memory can be read */
	bool sees_kernel;	   /* perf samples come from inside the kernel, too */
};

/* When a process or thread began. CLOCK_MONOTONIC ns, to half a tick. */
uint64_t process_facts_start_ns(uint64_t start_ticks);

#define STACK_COPY_BYTES (64u << 10)
#define ENDED_PROCESSES	 256

/* A process whose log was closed. The pid alone may be that of another process by now. */
struct ended_process {
	pid_t pid;
	uint64_t start_ticks;
};

struct sampling {
	struct process_table processes;
	struct sampling_facts facts;
	struct claims claims;
	struct cpu_log_tables tables;
	pid_t root;
	pid_t own_pid; /* not sampled */
	bool is_late;  /* the root ran before start_ns */
	uint64_t start_ns, period_ns;
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
	uint8_t stack_copy[STACK_COPY_BYTES];
};

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

/* Finds the processes that a program starts, and their threads. */
struct process_tree {
	int loadavg; /* descriptor of /proc/loadavg; -1: not open */
	long last_id;
	uint64_t scanned_ns, full_ns; /* when all threads were asked for their children */
	bool is_due, is_full;	      /* set by process_tree_begin() */
	bool lists_children;	      /* the kernel lists the children of a thread */
};

void process_tree_open(struct process_tree *tree);

/*
 * Finds out whether anything was created since the last scan. Call it before the threads are
 * observed, because the scan relies on what they did.
 */
void process_tree_begin(struct process_tree *tree, uint64_t now_ns);

/* Looks for new processes and threads if there can be any. */
void process_tree_scan(struct process_tree *tree, struct sampling *sampling);

/*
 * Adds the processes of a list of ids, which may come in parts. *id is the part of an id at the end
 * of the previous text, and 0 at first.
 */
void process_tree_add_listed(struct sampling *sampling, const char *text, size_t length, pid_t *id);

/* Ends the processes that have no thread any more, except for the root. */
void process_tree_sweep(struct sampling *sampling);
void process_tree_close(struct process_tree *tree);

#endif
