/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we write may be refused by way of a signal that ends the program: SIGXFSZ for a file that
 * may not grow (ulimit -f), SIGPIPE for a stderr that nobody reads. To us either is an error like
 * any other. Held while we write in one of the program's threads; the tracer's own threads have
 * all signals blocked. Any thread; makes system calls, by hand: the kernel's sets of signals are of a
 * word, the C library's of 128 bytes, for which a signal handler's stack may have no room.
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
	uint64_t signal; /* sets as the kernel has them */
	uint64_t mask_before;
	bool was_pending;
};

/* From here to signal_release(), on the same thread, the signal is not delivered. */
static inline void signal_hold(struct signal_guard *guard, int signal)
{
	uint64_t pending = 0;

	guard->signal = UINT64_C(1) << (signal - 1);
	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	guard->was_pending = pending & guard->signal;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &guard->signal, &guard->mask_before,
		sizeof(guard->signal));
}

/* refused: what was done brought the signal about. It is taken back; one that waited before is the
 * program's. Keeps errno. */
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
