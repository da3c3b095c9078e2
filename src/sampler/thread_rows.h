/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns observations of a thread into rows with weights. Pure.
 *
 * The weights of all rows of a thread add up to the time for which it was observed. Time on a CPU,
 * time ready for one and time off it are kept apart: each waits here until a row of its kind comes.
 */
#ifndef XT_SAMPLER_THREAD_ROWS_H
#define XT_SAMPLER_THREAD_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The columns of CPU_SAMPLE. */
struct cpu_row {
	uint64_t time_ns, span_ns, weight_ns;
	uint32_t thread; /* XT_THREAD_ID */
	uint32_t stack;	 /* XT_STACK_ID */
	uint32_t wait_pid, wait_tid;
	uint32_t count;
	uint8_t state; /* enum xt_cpu_state */
	uint8_t flags; /* enum xt_cpu_flag */
};

/* Zeros are an empty list. The owner frees rows. */
struct cpu_row_list {
	struct cpu_row *rows;
	size_t count, capacity;
	uint64_t lost_count; /* rows without memory */
};

struct thread_rows {
	uint32_t thread;
	uint64_t covered_ns; /* everything before is in a row, or in the sums below */
	/* Time that has no row yet: */
	uint64_t run_ns, ready_ns, off_ns;
	/* Counted by the kernel, but for later than covered_ns: its clocks are read apart. */
	uint64_t early_run_ns, early_ready_ns;
	struct cpu_row last; /* not in a list yet; count 0: nothing of it is left */
};

void thread_rows_start(struct thread_rows *rows, uint32_t thread, uint64_t start_ns);

/* Divides the time up to now_ns by what the kernel counted since the last call. */
void thread_rows_advance(struct thread_rows *rows, uint64_t now_ns, uint64_t run_ns,
			 uint64_t ready_ns);

/*
 * Adds an observation with the weight share_ns. can_extend: it may become part of the last row if
 * that is equal. Puts the last row into the list otherwise.
 */
void thread_rows_add(struct thread_rows *rows, const struct cpu_row *observed, uint64_t share_ns,
		     bool can_extend, struct cpu_row_list *list);

/* Adds an observation of a thread on the CPU, with share_ns of its time there. */
void thread_rows_add_running(struct thread_rows *rows, const struct cpu_row *observed,
			     uint64_t share_ns, struct cpu_row_list *list);

/* Adds an observation of a blocked thread. has_run: since its last observation. */
void thread_rows_add_blocked(struct thread_rows *rows, const struct cpu_row *observed, bool has_run,
			     struct cpu_row_list *list);

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

#endif
