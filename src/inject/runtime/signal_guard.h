/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suppresses the signals that a failed write can raise: SIGXFSZ for a file beyond `ulimit -f`,
 * SIGPIPE for a stderr without a reader. For us they are errors like any other. Used while we write
 * in the program's threads; the tracer's threads block all signals. Any thread.
 *
 * Makes raw system calls: the kernel's signal sets have 8 bytes, the C library's 128, which may not
 * fit on a signal handler's stack.
 */
#ifndef XT_INJECT_SIGNAL_GUARD_H
#define XT_INJECT_SIGNAL_GUARD_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct signal_guard {
	uint64_t signal; /* signal sets in the kernel's format */
	uint64_t mask_before;
	bool was_pending;
};

/* Blocks the signal on this thread until signal_release(). */
static inline void signal_hold(struct signal_guard *guard, int signal)
{
	uint64_t pending = 0;

	guard->signal = UINT64_C(1) << (signal - 1);
	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	guard->was_pending = pending & guard->signal;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &guard->signal, &guard->mask_before,
		sizeof(guard->signal));
}

/*
 * refused: the write raised the signal, so it is consumed, unless one was pending before. Keeps
 * errno.
 */
static inline void signal_release(const struct signal_guard *guard, bool refused)
{
	const struct timespec at_once = {0, 0};
	int saved_errno = errno;

	if (refused && !guard->was_pending)
		syscall(SYS_rt_sigtimedwait, &guard->signal, NULL, &at_once, sizeof(guard->signal));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &guard->mask_before, NULL, sizeof(guard->signal));
	errno = saved_errno;
}

#endif
