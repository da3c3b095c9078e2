/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of running threads from perf_event_open: one inherited software clock for each CPU, with
 * user registers and a copy of the top of the stack. The kernel takes them without a signal and
 * without stopping a thread. Sampler thread only.
 */
#ifndef XT_SAMPLER_PERF_EVENTS_H
#define XT_SAMPLER_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Explains why perf_event_open failed with this errno, and how to allow it. cpu_count: events that
 * are needed.
 */
void perf_refusal_explain(int error, size_t cpu_count, char *why, size_t why_bytes);

#define PERF_STACK_BYTES 16384

/* Registers of a thread in user mode. `known` has bit 1 << n for each member n below. */
enum thread_register {
	THREAD_RIP,
	THREAD_RSP,
	THREAD_RBP,
	THREAD_RBX,
	THREAD_R12,
	THREAD_R13,
	THREAD_R14,
	THREAD_R15,
	THREAD_REGISTERS
};

struct thread_registers {
	uint64_t value[THREAD_REGISTERS];
	uint32_t known;
};

struct perf_sample {
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	pid_t pid, tid;	   /* in the sampler's PID namespace */
	bool is_in_kernel; /* the thread was in the kernel; its registers are those of its call */
	bool is_fault;	   /* one in many page faults, not a moment of the clock */
	struct thread_registers registers;
	const uint8_t *stack; /* from registers RSP on; valid during the callback */
	size_t stack_bytes;
};

#define PERF_RECORD_BYTES_MAX 65536u

/* The caller may read the first members. */
struct perf_events {
	/*
	 * Samples come from inside the kernel, too. Without that permission, one in many page
	 * faults is sampled instead, because the memory that a thread touches is its own doing.
	 */
	bool sees_kernel;
	uint64_t lost_count; /* samples that the kernel dropped because a buffer was full */

	struct perf_ring *rings;
	size_t ring_count;
	uint64_t data_bytes; /* of each ring: a power of two */
	int epoll_fd;
	size_t polled_count; /* events in the set of epoll_fd */
	double hz;
	uint64_t random;
	uint8_t record[PERF_RECORD_BYTES_MAX]; /* one that wraps around the end of its ring */
};

/*
 * Opens the events for a process that has not called exec yet, and everything that it starts.
 * Returns 0, or -errno with a reason for the user in *why: what forbids it and how to allow it.
 */
int perf_events_open(struct perf_events **out, pid_t pid, double hz, char *why, size_t why_bytes);

/* A descriptor that poll() reports as readable as soon as a sample waits. -1: no more will come. */
int perf_events_descriptor(const struct perf_events *events);

/*
 * Stops polling the events that have ended. The kernel ends them when the program has ended, or
 * called exec with a program that may not be traced. Otherwise poll() would report them forever.
 */
void perf_events_drop_ended(struct perf_events *events);

/* Calls taken() for each waiting sample, in order of time within a CPU. */
void perf_events_drain(struct perf_events *events,
		       void (*taken)(void *context, const struct perf_sample *sample),
		       void *context);

/* Draws a new period at random around 1 / hz, so that sampling cannot lock in step with a loop. */
void perf_events_jitter(struct perf_events *events);

void perf_events_close(struct perf_events *events);

#endif
