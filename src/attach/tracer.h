/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops threads of the process and lets them go. A thread of this program, the tracer, makes all
 * these calls: its end, also by SIGKILL, lets go all that it holds.
 *
 * While it works, the tracer also holds the main thread of the process, without stopping it. The
 * kernel allows one tracer for a thread, so this keeps a second xtrace attach out, also one that
 * sees the process under another id.
 */
#ifndef XT_ATTACH_TRACER_H
#define XT_ATTACH_TRACER_H

#include <stdbool.h>
#include <sys/types.h>

#include "attach/why.h"

struct tracer {
	pid_t pid;
	bool holds_main;
	bool is_stuck; /* a thread did not stop: the end of the tracer lets it go */
	struct why why;
};

/*
 * Holds the main thread, and stops thread tid. Returns 0; -EAGAIN with why if another thread, or
 * the same one later, may do; another -errno with why if that is hopeless. On errors, the thread
 * continues as before.
 */
int tracer_stop(struct tracer *tracer, pid_t tid);

/*
 * Some calls return EINTR because of the stop alone. The kernel makes the call again instead if it
 * finds this error, unless a signal handler runs.
 */
void tracer_undo_stop(pid_t tid);

/* Lets a stopped thread go. */
void tracer_detach(struct tracer *tracer, pid_t tid);

/* Before the tracer ends. */
void tracer_end(struct tracer *tracer);

/* The last call of ptrace() has failed. Returns as tracer_stop() does. */
int tracer_refuse_errno(const struct tracer *tracer, const char *call);

#endif
