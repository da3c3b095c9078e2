/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a process that may be borrowed, the best first. Looks at /proc and memory only. A
 * thread is chosen by its stack, the system call that it waits in, and its schedule. x86-64.
 */
#ifndef XT_ATTACH_CANDIDATES_H
#define XT_ATTACH_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/target.h"
#include "sampler/perf_events.h"
#include "sampler/process_modules.h"

/*
 * The lowest usable address of the stack that the C library knows for a thread, but not for the
 * main thread. thread_block: its FS base. False if the stack pointer is elsewhere, or if this C
 * library keeps the bounds in another way.
 */
bool own_stack_find(pid_t pid, uint64_t thread_block, uint64_t stack_pointer, uint64_t *lowest);

/*
 * Whether a blocked thread may be borrowed, by its stack. The stub needs locks of the C library
 * that such a thread must not hold: those of malloc, the loader, and the list of threads.
 */
enum stack_safety {
	STACK_SAFE,
	STACK_UNSAFE,	      /* with *why */
	STACK_UNKNOWN,	      /* with *why: the whole stack could not be walked */
	STACK_WAITS_FOR_LOCK, /* safe, but better choose another thread */
	STACK_INTERRUPTED,    /* with *why: a signal handler keeps such a lock held */
};

/* Walks the stack of a thread that does not run. */
enum stack_safety safe_stack_check(struct process_modules *modules, pid_t pid,
				   const struct thread_registers *registers, const struct why *why);

/*
 * Whether a thread is STACK_INTERRUPTED: *why. Walks the stacks of all blocked threads, or with
 * is_again of those that have moved since the last call.
 */
bool interrupted_threads_find(struct target *target, bool is_again, const struct why *why);

/* How the kernel schedules a thread. Threads inherit it from the one that makes them. */
struct schedule {
	int policy; /* SCHED_OTHER, … */
	int nice;
	uint64_t cpus[16]; /* bit n of word w: CPU 64 * w + n */
};

/* How a system call behaves when it is interrupted and restarted. Lower ones are preferred. */
enum wait_rank {
	WAIT_EXACT,	/* restarted by the kernel; waits without a time, or until a fixed time */
	WAIT_REMAINING, /* continues with the time that remains */
	WAIT_EINTR,	/* a debugger's stop alone makes it return EINTR */
	WAIT_REPEATED,	/* the same, and it waits for its whole time again */
	WAIT_UNFIT,
};

/* The rank of a blocked call. arguments: the first six. */
enum wait_rank wait_call_rank(long number, const uint64_t arguments[6]);

/* How a stopped call continues. */
struct wait_restart {
	int kind;	 /* STUB_RESTART_*, with its flag */
	uint64_t result; /* RAX to return with if it has finished, else the call to make again */
};

/* number and result are those of a thread that was stopped in the call. */
struct wait_restart wait_call_restart(long number, uint64_t result);

/* ERESTARTNOHAND in the kernel, which a tracer may set as the result of a call. */
#define WAIT_RESTARTS_UNLESS_HANDLED INT64_C(514)

/* Whether a stop of this call has a visible effect, unless the call is made again. */
bool wait_call_must_repeat(long number, uint64_t result);

#define CANDIDATES_MAX	       64
#define CANDIDATES_REFUSED_MAX 1024
#define CANDIDATE_WHY_BYTES    128

struct candidate {
	pid_t tid;
	enum wait_rank rank;
	bool is_last;	 /* its stack must be walked again once it is stopped */
	bool is_refused; /* it was stopped in vain before */
	bool is_locked;	 /* it waits for a lock, which an allocator may have */
	struct schedule schedule;
	bool is_unusual;		   /* its schedule */
	char why_not[CANDIDATE_WHY_BYTES]; /* empty: it may be tried */
};

struct candidates {
	struct candidate list[CANDIDATES_MAX]; /* those to try first, then the others */
	size_t count, fit_count;
	size_t thread_count;		       /* of the process */
	struct schedule usual;		       /* for threads of xtrace */
	pid_t refused[CANDIDATES_REFUSED_MAX]; /* a ring */
	size_t refused_count;
};

/* Start with all zeros. Threads that were refused come last, until all were. */
void candidates_find(struct candidates *candidates, struct target *target);

/* The thread was stopped, but must not be borrowed now. */
void candidates_refuse(struct candidates *candidates, struct candidate *candidate, const char *why);

#endif
