/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls in which a thread may be borrowed: how they behave when they are interrupted and
 * restarted. x86-64; pure.
 */
#ifndef XT_ATTACH_WAIT_CALLS_H
#define XT_ATTACH_WAIT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Lower ones are preferred. */
enum wait_rank {
	WAIT_EXACT,	/* restarted by the kernel; waits without a time, or until a fixed time */
	WAIT_REMAINING, /* continues with the time that remains */
	WAIT_EINTR,	/* a debugger's stop alone makes it return EINTR */
	WAIT_REPEATED,	/* the same, and it waits for its whole time again */
	WAIT_UNFIT,
};

/* The rank of a blocked call. arguments: the first six. */
enum wait_rank wait_call_rank(long number, const uint64_t arguments[6]);

/* Whether the first argument is a descriptor, and the time limit of a socket applies. */
bool wait_call_reads(long number);

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

#endif
