/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/tracer.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "attach/proc_status.h"
#include "attach/ptrace_refusal.h"
#include "attach/wait_calls.h"

#define STOP_TIMEOUT_MS 1000
#define EVENT_SHIFT	8 /* of PTRACE_EVENT_* beside a signal */

enum stop_kind {
	STOP_NONE,
	STOP_BY_INTERRUPT,
	STOP_BY_SIGNAL, /* it is about to get this signal */
	STOP_OF_PROCESS,
	STOP_ENDED,
};

int tracer_refuse_errno(const struct tracer *tracer, const char *call)
{
	int error = errno;

	if (error == ESRCH)
		return refuse(&tracer->why, -EAGAIN, "has ended");
	return refuse(&tracer->why, -error, "%s: %s", call, strerror(error));
}

static int seize(const struct tracer *tracer, pid_t tid)
{
	struct ptrace_facts facts;
	struct proc_status status;
	char by[32] = "another container";
	const char *state;

	if (!ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return 0;
	if (errno != EPERM)
		return tracer_refuse_errno(tracer, "PTRACE_SEIZE");
	if (!proc_status_read(&status, tid))
		return refuse(&tracer->why, -EAGAIN, "has ended");
	state = proc_status_text(&status, "State");
	if (state && (*state == 'Z' || *state == 'X'))
		return refuse(&tracer->why, -EAGAIN, "has ended");
	ptrace_facts_read(&facts, tracer->pid);
	if (facts.is_blocked) {
		ptrace_refusal_explain(&facts, tracer->why.text, tracer->why.bytes);
		return -EPERM;
	}
	/* Its memory was readable, so ptrace is allowed. A tracer in another container has id 0. */
	if (proc_status_number(&status, "TracerPid", 0) > 0)
		snprintf(by, sizeof(by), "process %ld",
			 proc_status_number(&status, "TracerPid", 0));
	return refuse(&tracer->why, -EAGAIN, "cannot be borrowed while %s traces %s", by,
		      tid == tracer->pid ? "the main thread" : "it");
}

/*
 * The stop stays in the kernel's queue. If this program is killed now, the kernel delivers the
 * signal.
 */
static enum stop_kind look_at_stop(pid_t tid, int *signal)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL))
		return STOP_ENDED;
	if (!info.si_pid)
		return STOP_NONE;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return STOP_ENDED;
	*signal = info.si_status & ((1 << EVENT_SHIFT) - 1);
	if (info.si_status >> EVENT_SHIFT != PTRACE_EVENT_STOP)
		return STOP_BY_SIGNAL;
	return *signal == SIGTRAP ? STOP_BY_INTERRUPT : STOP_OF_PROCESS;
}

void tracer_undo_stop(pid_t tid)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &registers) ||
	    !wait_call_must_repeat((long)registers.orig_rax, registers.rax))
		return;
	registers.rax = (uint64_t)-WAIT_RESTARTS_UNLESS_HANDLED;
	ptrace(PTRACE_SETREGS, tid, NULL, &registers);
}

static void detach(struct tracer *tracer, pid_t tid, int signal)
{
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal);
	if (tid == tracer->pid)
		tracer->holds_main = false;
}

void tracer_detach(struct tracer *tracer, pid_t tid)
{
	detach(tracer, tid, 0);
}

/*
 * A traced thread gets signals that the program ignores, too, so they interrupt its call. A thread
 * that cannot be stopped is let go by the end of the tracer.
 */
static int wait_for_stop(struct tracer *tracer, pid_t tid)
{
	const struct timespec nap = {.tv_nsec = 100000};
	int signal = 0;

	for (int i = 0; i < STOP_TIMEOUT_MS * 10; i++) {
		enum stop_kind kind = look_at_stop(tid, &signal);

		if (kind == STOP_BY_INTERRUPT)
			return 0;
		if (kind == STOP_ENDED)
			return refuse(&tracer->why, -EAGAIN, "has ended");
		if (kind != STOP_NONE) {
			tracer_undo_stop(tid);
			detach(tracer, tid, kind == STOP_BY_SIGNAL ? signal : 0);
			return refuse(&tracer->why, -EAGAIN, "gets a signal");
		}
		nanosleep(&nap, NULL);
	}
	tracer->is_stuck = true;
	return refuse(&tracer->why, -EAGAIN, "does not stop; is the process frozen?");
}

int tracer_stop(struct tracer *tracer, pid_t tid)
{
	int error = 0;

	if (!tracer->holds_main) {
		error = seize(tracer, tracer->pid);
		tracer->holds_main = !error;
	}
	if (!error && tid != tracer->pid)
		error = seize(tracer, tid);
	if (error)
		return error;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return tracer_refuse_errno(tracer, "PTRACE_INTERRUPT");
	return wait_for_stop(tracer, tid);
}

void tracer_end(struct tracer *tracer)
{
	int signal = 0;

	/* The kernel would deliver the signal as well, but leave the EINTR. */
	if (tracer->holds_main && look_at_stop(tracer->pid, &signal) == STOP_BY_SIGNAL) {
		tracer_undo_stop(tracer->pid);
		detach(tracer, tracer->pid, signal);
	}
}
