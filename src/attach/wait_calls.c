/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/wait_calls.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "attach/stub.h"

/* Error numbers inside the kernel (include/linux/errno.h), which a tracer sees. */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      WAIT_RESTARTS_UNLESS_HANDLED
#define ERESTART_RESTARTBLOCK 516

#define NONE (-1)

/* Calls that do more than wait, such as write(), are missing: they may be done in part. */
static const struct wait_call {
	long number;
	enum wait_rank rank;  /* without a time */
	enum wait_rank timed; /* with one */
	int time_argument;    /* NONE: never has one */
	bool time_is_number;  /* of ms; negative: none. Otherwise a pointer */
	int mask_argument;    /* a signal mask for the time of the call; NONE: it has none */
	int flags_argument;   /* unfit with these flags */
	uint64_t unfit_flags;
} wait_calls[] = {
	{SYS_read, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_readv, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_recvfrom, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, 3, MSG_WAITALL},
	{SYS_recvmsg, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, 2, MSG_WAITALL},
	{SYS_accept, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_accept4, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_wait4, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_waitid, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_pause, WAIT_EXACT, WAIT_EXACT, NONE, false, NONE, NONE, 0},
	{SYS_futex, WAIT_EXACT, WAIT_REMAINING, 3, false, NONE, NONE, 0},
	{SYS_poll, WAIT_EXACT, WAIT_REMAINING, 2, true, NONE, NONE, 0},
	{SYS_nanosleep, WAIT_REMAINING, WAIT_REMAINING, NONE, false, NONE, NONE, 0},
	{SYS_clock_nanosleep, WAIT_REMAINING, WAIT_REMAINING, NONE, false, NONE, NONE, 0},
	{SYS_restart_syscall, WAIT_REMAINING, WAIT_REMAINING, NONE, false, NONE, NONE, 0},
	/* The kernel writes the time that remains into their arguments. */
	{SYS_select, WAIT_EXACT, WAIT_REMAINING, 4, false, NONE, NONE, 0},
	{SYS_pselect6, WAIT_EXACT, WAIT_REMAINING, 4, false, 5, NONE, 0},
	{SYS_ppoll, WAIT_EXACT, WAIT_REMAINING, 2, false, 3, NONE, 0},
	{SYS_epoll_wait, WAIT_EINTR, WAIT_REPEATED, 3, true, NONE, NONE, 0},
	{SYS_epoll_pwait, WAIT_EINTR, WAIT_REPEATED, 3, true, 4, NONE, 0},
	{SYS_rt_sigtimedwait, WAIT_EINTR, WAIT_REPEATED, 2, false, NONE, NONE, 0},
};

static const struct wait_call *find(long number)
{
	for (size_t i = 0; i < sizeof(wait_calls) / sizeof(*wait_calls); i++)
		if (wait_calls[i].number == number)
			return &wait_calls[i];
	return NULL;
}

/* These wait until a fixed time, so restarting them from the beginning is exact. */
static bool is_absolute(long number, const uint64_t arguments[6])
{
	if (number == SYS_clock_nanosleep)
		return arguments[1] & TIMER_ABSTIME;
	return number == SYS_futex && (arguments[1] & FUTEX_CMD_MASK) != FUTEX_WAIT;
}

/* Other operations wake threads, so they are never blocked for long. */
static bool is_other_futex(long number, const uint64_t arguments[6])
{
	int operation = (int)(arguments[1] & FUTEX_CMD_MASK);

	return number == SYS_futex && operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET;
}

enum wait_rank wait_call_rank(long number, const uint64_t arguments[6])
{
	const struct wait_call *call = find(number);
	bool is_timed;

	if (!call || is_other_futex(number, arguments))
		return WAIT_UNFIT;
	/* A signal may be allowed during this call alone, so it must not be delivered outside. */
	if (call->mask_argument != NONE && arguments[call->mask_argument])
		return WAIT_UNFIT;
	if (call->flags_argument != NONE && arguments[call->flags_argument] & call->unfit_flags)
		return WAIT_UNFIT;
	if (is_absolute(number, arguments))
		return WAIT_EXACT;
	is_timed = call->time_argument != NONE &&
		   (call->time_is_number ? (int32_t)arguments[call->time_argument] >= 0
					 : arguments[call->time_argument] != 0);
	return is_timed ? call->timed : call->rank;
}

bool wait_call_reads(long number)
{
	static const long calls[] = {SYS_read,	  SYS_readv,  SYS_recvfrom,
				     SYS_recvmsg, SYS_accept, SYS_accept4};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i] == number)
			return true;
	return false;
}

/*
 * EINTR here is the effect of the stop: the caller makes sure that no signal waits for its handler.
 */
struct wait_restart wait_call_restart(long number, uint64_t result)
{
	uint64_t call = (uint64_t)number;

	switch (-(int64_t)result) {
	case ERESTARTSYS:
		return (struct wait_restart){STUB_RESTART_BY_HANDLER, call};
	case ERESTARTNOINTR:
		return (struct wait_restart){STUB_RESTART_ALWAYS, call};
	case ERESTARTNOHAND:
	case EINTR:
		return (struct wait_restart){STUB_RESTART_UNLESS_HANDLED, call};
	case ERESTART_RESTARTBLOCK:
		return (struct wait_restart){STUB_RESTART_UNLESS_HANDLED | STUB_RESTART_BLOCK,
					     SYS_restart_syscall};
	default:
		return (struct wait_restart){STUB_RESTART_NONE, result};
	}
}

bool wait_call_must_repeat(long number, uint64_t result)
{
	return find(number) && -(int64_t)result == EINTR;
}
