/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into xtrace attach.
 *
 * Before call number FAULT_STEP of those that touch the process, it kills this process, or process
 * FAULT_PROCESS. Before the first call of ptrace() with FAULT_REQUEST, it sends FAULT_SIGNAL to
 * FAULT_PROCESS, or to this process, and waits; a later FAULT_KILL_REQUEST kills this process. The
 * first call with FAULT_DROP_REQUEST has no effect. FAULT_CLOCK makes the monotonic clock run that
 * many times as fast.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S	INT64_C(1000000000)
#define POKES_OF_A_STEP 40

/* Each word is written by a call of its own. */
static bool is_one_of_many(int request)
{
	static int count;

	return request == PTRACE_POKEDATA && count++ % POKES_OF_A_STEP;
}

static void step(void)
{
	static int count;
	const char *number = getenv("FAULT_STEP"), *process = getenv("FAULT_PROCESS");
	const struct timespec pause = {0, 20000000};

	if (!number || ++count != atoi(number))
		return;
	kill(process ? atoi(process) : getpid(), SIGKILL);
	nanosleep(&pause, NULL); /* until it is gone */
}

static bool is_request(const char *variable, int request)
{
	const char *number = getenv(variable);

	return number && (int)strtol(number, NULL, 0) == request;
}

static bool drops(int request)
{
	static bool is_dropped;

	if (is_dropped || !is_request("FAULT_DROP_REQUEST", request))
		return false;
	is_dropped = true;
	return true;
}

static void signal_at(int request)
{
	const struct timespec pause = {0, 150000000};
	const char *process = getenv("FAULT_PROCESS");
	static bool is_sent;

	if (is_sent && is_request("FAULT_KILL_REQUEST", request))
		kill(getpid(), SIGKILL);
	if (is_sent || !is_request("FAULT_REQUEST", request))
		return;
	is_sent = true;
	kill(process ? atoi(process) : getpid(), atoi(getenv("FAULT_SIGNAL")));
	nanosleep(&pause, NULL); /* until it has its effect */
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
	const char *factor = getenv("FAULT_CLOCK");
	int error = (int)syscall(SYS_clock_gettime, clock, now);

	if (!error && factor && clock == CLOCK_MONOTONIC) {
		int64_t ns = (now->tv_sec * NS_PER_S + now->tv_nsec) * atoi(factor);

		*now = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
	}
	return error;
}

__attribute__((visibility("default"))) long ptrace(enum __ptrace_request request, ...)
{
	long (*next)(enum __ptrace_request, ...) =
		(long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "ptrace");
	va_list args;
	pid_t pid;
	void *address, *data;
	long result;

	va_start(args, request);
	pid = va_arg(args, pid_t);
	address = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	if (!is_one_of_many((int)request))
		step();
	signal_at((int)request);
	result = drops((int)request) ? 0 : next(request, pid, address, data);
	if (request == PTRACE_DETACH)
		step(); /* after the last one */
	return result;
}
