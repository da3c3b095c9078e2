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
#include "sampler/process_modules.h"
#include "sampler/python_process.h"
#include "sampler/remote_unwind.h"
#include "sampler/thread_rows.h"

struct cpu_log;

/* Tables for the flush of one log at a time. */
struct cpu_log_tables {
	struct xt_table tables[XT_KIND_COUNT];
};

int cpu_log_tables_init(struct cpu_log_tables *tables);
void cpu_log_tables_free(struct cpu_log_tables *tables);

/* Where a log is, and of which process. */
struct cpu_log_place {
	const char *data_dir, *host;
	pid_t pid;
};

/*
 * Opens the log of a process that is sampled from start_ns on. The file is created by the first
 * flush. 0 or -ENOMEM. Free it with cpu_log_close().
 */
int cpu_log_open(struct cpu_log **out, const struct cpu_log_place *place, uint64_t start_ns);

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
