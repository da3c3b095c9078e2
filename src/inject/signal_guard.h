/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we write may be refused by way of a signal that ends the program: SIGXFSZ for a file that
 * may not grow (ulimit -f), SIGPIPE for a stderr that nobody reads. To us either is an error like
 * any other. Held while we write in one of the program's threads; the tracer's own threads have
 * all signals blocked. Any thread; makes system calls.
 */
#ifndef XT_INJECT_SIGNAL_GUARD_H
#define XT_INJECT_SIGNAL_GUARD_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct signal_guard {
	sigset_t signal;
	sigset_t mask_before;
	bool was_pending;
};

/* From here to signal_release(), on the same thread, the signal is not delivered. */
static inline void signal_hold(struct signal_guard *guard, int signal)
{
	sigset_t pending;

	sigemptyset(&guard->signal);
	sigaddset(&guard->signal, signal);
	sigpending(&pending);
	guard->was_pending = sigismember(&pending, signal);
	pthread_sigmask(SIG_BLOCK, &guard->signal, &guard->mask_before);
}

/* refused: what was done brought the signal about. It is taken back; one that waited before is the
 * program's. Keeps errno. */
static inline void signal_release(const struct signal_guard *guard, bool refused)
{
	const struct timespec at_once = {0, 0};
	int saved_errno = errno;

	if (refused && !guard->was_pending)
		sigtimedwait(&guard->signal, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &guard->mask_before, NULL);
	errno = saved_errno;
}

#endif
