/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU log of a process. Definitions and rows are kept in memory until a flush, which writes
 * them with tables that all logs share. Sampler thread only.
 */
#ifndef XT_SAMPLER_CPU_LOG_H
#define XT_SAMPLER_CPU_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "log/base/table.h"
#include "log/read/rows.h"
#include "sampler/process_modules.h"
#include "sampler/python_process.h"
#include "sampler/remote_unwind.h"

/* Zeros are an empty list. The owner frees rows. */
struct cpu_row_list {
	struct xt_row_cpu_sample *rows;
	size_t count, capacity;
	uint64_t lost_count; /* rows without memory */
};

/*
 * Turns observations of a thread into rows with weights, which add up to the time for which it was
 * observed. Time on a CPU, time ready for one and time off it are kept apart: each waits here until
 * a row of its kind comes.
 */
struct thread_rows {
	uint32_t thread;
	uint64_t covered_ns; /* everything before is in a row, or in the sums below */
	/* Time that has no row yet: */
	uint64_t run_ns, ready_ns, off_ns;
	/* Counted by the kernel, but for later than covered_ns: its clocks are read apart. */
	uint64_t early_run_ns, early_ready_ns;
	struct xt_row_cpu_sample last; /* not in a list yet; count 0: nothing of it is left */
};

void thread_rows_start(struct thread_rows *rows, uint32_t thread, uint64_t start_ns);

/* Divides the time up to now_ns by what the kernel counted since the last call. */
void thread_rows_advance(struct thread_rows *rows, uint64_t now_ns, uint64_t run_ns,
			 uint64_t ready_ns);

/* Adds an observation of a thread on the CPU, with share_ns of its time there. */
void thread_rows_add_running(struct thread_rows *rows, const struct xt_row_cpu_sample *observed,
			     uint64_t share_ns, struct cpu_row_list *list);

/* Adds an observation of a blocked thread. has_run: since its last observation. */
void thread_rows_add_blocked(struct thread_rows *rows, const struct xt_row_cpu_sample *observed,
			     bool has_run, struct cpu_row_list *list);

/*
 * The thread was blocked at the last observation, and has been on a CPU once since. So the time off
 * the CPU is that of the last row.
 */
void thread_rows_end_wait(struct thread_rows *rows);

/* Extends the last row by an observation without any change. */
void thread_rows_extend(struct thread_rows *rows, uint64_t now_ns);

/*
 * Puts the last row into the list, as far as it goes: a kill then loses only what comes later. The
 * next observation extends a new row with the same content.
 */
void thread_rows_split(struct thread_rows *rows, struct cpu_row_list *list);

/* Puts the last row, and rows without a stack for time that has none, into the list. */
void thread_rows_end(struct thread_rows *rows, struct cpu_row_list *list);

struct cpu_log;

/* Tables for the flush of one log at a time. */
struct cpu_log_tables {
	struct xt_table tables[XT_KIND_COUNT];
};

int cpu_log_tables_init(struct cpu_log_tables *tables);
void cpu_log_tables_free(struct cpu_log_tables *tables);

/*
 * Opens the log of a process that is sampled from start_ns on. The file is created by the first
 * flush. data_dir must outlive it. NULL if out of memory. Free it with cpu_log_close().
 */
struct cpu_log *cpu_log_open(const char *data_dir, pid_t pid, uint64_t start_ns);

/* Rows that the next flush writes. */
struct cpu_row_list *cpu_log_rows(struct cpu_log *log);

void cpu_log_meta(struct cpu_log *log, const char *key, const char *value);
void cpu_log_account(struct cpu_log *log, const char *name, uint64_t value);

/* Returns a new XT_THREAD_ID. 0 if out of memory. */
uint32_t cpu_log_thread(struct cpu_log *log, pid_t tid, const char *name, uint64_t start_ns);
void cpu_log_rename_thread(struct cpu_log *log, uint32_t id, pid_t tid, const char *name,
			   uint64_t start_ns);

/* The frames that cpu_log_stack() takes. */
struct cpu_stack {
	const struct native_stack *native; /* NULL: unknown */
	struct process_modules *modules;   /* of the process; gets ids */
	const struct python_stack *python; /* NULL: none */
	const struct python_process *python_process;
	const uint32_t *places; /* one for each Python frame */
	bool python_changed;	/* the Python frames at the inner end are unknown */
};

/* Returns the XT_STACK_ID of the frames. 0 if there are none, or out of memory. */
uint32_t cpu_log_stack(struct cpu_log *log, const struct cpu_stack *stack, uint64_t now_ns);

/* The addresses of the program mean other code from now on: it called exec. */
void cpu_log_forget_program(struct cpu_log *log);

/* Whether enough waits for a flush to be worthwhile. */
bool cpu_log_is_due(const struct cpu_log *log, uint64_t now_ns);

/* Writes what waits. Returns 0 or -errno; rows may be lost then, which the log counts. */
int cpu_log_flush(struct cpu_log *log, struct cpu_log_tables *tables, uint64_t now_ns);

/* Writes the rest and the end of the log, and frees it. Returns 0 or -errno. */
int cpu_log_close(struct cpu_log *log, struct cpu_log_tables *tables, uint64_t now_ns);

#endif
