/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of host threads: what a thread did at some moments. A CPU log has them
 * (docs/internals/LOG_FORMAT.md, CPU_SAMPLE).
 */
#ifndef XT_MERGE_CPU_SAMPLES_H
#define XT_MERGE_CPU_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/grow.h"
#include "xtrace/log_format.h"

/*
 * The time that a sample represents: from its first observation to its last, and time before. It
 * reaches back to the thread's previous sample if its weight accounts for that. Samples with the
 * same first observation divide that time by their weights. Covers of a thread do not overlap, in
 * any log.
 */
struct cpu_cover {
	uint64_t from_ns, until_ns;
};

/* Consecutive observations of a thread with the same state and stack. */
struct cpu_sample {
	/*
	 * Times of the first and last observation; equal if there is one. Sorted rows of a thread
	 * do not overlap.
	 */
	uint64_t first_ns, last_ns;
	uint64_t weight_ns; /* time of the thread that it represents */
	uint32_t thread;    /* XT_THREAD_ID */
	uint32_t tid;
	uint32_t stack;		     /* XT_STACK_ID, 0: unknown */
	uint32_t count;		     /* observations */
	struct cpu_cover cover;	     /* set by cpu_samples_sort() */
	uint32_t wait_pid, wait_tid; /* the thread that it waits for; 0: unknown */
	uint8_t state;		     /* enum xt_cpu_state */
	uint8_t flags;		     /* enum xt_cpu_flag */
};

/* The samples of a thread, in order of time: rows [first, end). */
struct cpu_thread {
	uint32_t tid;
	size_t first, end;
};

struct cpu_samples {
	LIST(struct cpu_sample);
	struct cpu_thread *threads; /* by tid, once sorted */
	size_t thread_count;
};

/*
 * Sorts the samples, whose tid must be set, and finds their covers. reach_ns: a sample represents
 * at least so much time before its first observation, and at most so much after its last.
 */
void cpu_samples_sort(struct cpu_samples *samples, uint64_t reach_ns);
void cpu_samples_free(struct cpu_samples *samples);

/* Returns the samples of a thread, or NULL. */
const struct cpu_thread *cpu_samples_of(const struct cpu_samples *samples, uint32_t tid);

/* Returns the first row of the thread that is not over at time_ns; thread->end if there is none. */
size_t cpu_samples_at(const struct cpu_samples *samples, const struct cpu_thread *thread,
		      uint64_t time_ns);

/* Returns the first row of the thread whose cover ends after time_ns, or thread->end. */
size_t cpu_samples_covering(const struct cpu_samples *samples, const struct cpu_thread *thread,
			    uint64_t time_ns);

#define CPU_STACK_UNKNOWN "[running, stack unknown]"

/*
 * Last frame of a path. It tells a running thread without a stack from time without a sample. NULL:
 * none is needed.
 */
const char *cpu_sample_label(enum xt_cpu_state state, bool has_stack);

/* Whether cpu_sample_label() returns this text for any sample. */
bool cpu_is_label(const char *text);

/* Name of a state in tables, such as "lock". */
const char *cpu_state_name(enum xt_cpu_state state);

/* Whether the thread used a CPU. */
static inline bool cpu_state_runs(enum xt_cpu_state state)
{
	return state == XT_CPU_RUNNING || state == XT_CPU_IN_KERNEL || state == XT_CPU_PAGE_FAULT;
}

/* Whether a sample tells what the thread did: its stack does, or a state in which it waits. */
static inline bool cpu_sample_tells(enum xt_cpu_state state, bool has_stack)
{
	return has_stack || (state != XT_CPU_UNKNOWN && !cpu_state_runs(state));
}

#endif
