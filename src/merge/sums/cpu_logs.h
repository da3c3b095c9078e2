/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU logs of a run in memory, with the names of their frames. They are read before all other
 * logs, because the idle time of a GPU may be due to any process.
 *
 * Read only once loaded: the readings of several logs may use them at the same time.
 */
#ifndef XT_MERGE_CPU_LOGS_H
#define XT_MERGE_CPU_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/naming/frames.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"

/* The call of MPI that a stack is in. MPI communicates on the CPU, so no kernel shows it. */
struct mpi_call {
	bool is_mpi;
	bool needs_all; /* no rank leaves it before all have come */
	uint32_t name;	/* of the function, in the model's names */
};

struct cpu_log {
	const struct input *input;
	struct model *model;
	struct addresses addresses;
	struct demangle_cache names;
	struct frames frames;
	uint64_t period_ns; /* mean time between two observations of a thread */
	/* By XT_STACK_ID: PyTorch's engine waits for backward() in the main thread. */
	uint8_t *waits_for_main;
	struct mpi_call *mpi_calls; /* by XT_STACK_ID: the innermost */
	bool has_mpi;
};

struct cpu_logs {
	struct cpu_log *list;
	size_t count;
};

/* Properties of a run's CPU logs. */
struct cpu_facts {
	uint64_t process_count, thread_count;
	double hz;     /* the highest of all logs */
	bool has_perf; /* all logs have stacks of running threads from the kernel's events */
	bool estimates_kernel;	 /* in some log, these events leave out time in the kernel */
	char why[256];		 /* why has_perf is false; empty if unknown */
	char why_no_memory[256]; /* of the first log without Python lines; empty: all have them */
	/* Gaps between GPU work of at least IDLE_LONG_NS, and their part with a CPU path. */
	uint64_t long_idle_ns, long_covered_ns;
};

/* The CPU logs of a run. */
struct cpu_data {
	const struct cpu_logs *logs; /* NULL while they are not loaded */
	struct cpu_facts facts;
	size_t only_count; /* processes read so far that have only a CPU log */
};

/* Adds the facts of a log. */
void cpu_facts_add(struct cpu_facts *facts, const struct cpu_log *log);

/* A moment of a thread: a row of a CPU log. */
struct cpu_moment {
	const struct cpu_log *log; /* NULL: none */
	const struct cpu_thread *thread;
	size_t row;
};

/* Sets waits_for_main and mpi_calls. Call it when the addresses have names. */
void cpu_log_note_stacks(struct cpu_log *log);

/* Sets the process and thread that a sample waits for. Returns false if unknown. */
bool cpu_log_waits_for(const struct cpu_log *log, const struct cpu_sample *sample,
		       uint32_t *pid_out, uint32_t *tid_out);

void cpu_logs_free(struct cpu_logs *logs);

/*
 * Finds the log of a process that has samples of a thread around a time. Any reading: pid and tid
 * are of the same host and PID namespace as `near`. log is NULL if there is none.
 */
struct cpu_moment cpu_logs_find(const struct cpu_logs *logs, const struct input *near, uint32_t pid,
				uint32_t tid, uint64_t time_ns);

static inline const struct cpu_sample *cpu_moment_sample(const struct cpu_moment *moment)
{
	return &moment->log->model->cpu_samples.list[moment->row];
}

#endif
