/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into xtrace attach. Before call number FAULT_STEP of those that touch the process, it
 * kills this process, or process FAULT_PROCESS.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static bool touches;

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
	step();
	touches = true;
	result = next(request, pid, address, data);
	touches = request != PTRACE_DETACH;
	if (request == PTRACE_DETACH) {
		step(); /* after the last one */
		touches = false;
	}
	return result;
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *bytes, size_t byte_count,
						      off_t offset)
{
	ssize_t (*next)(int, const void *, size_t, off_t) =
		(ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");

	if (touches)
		step();
	return next(fd, bytes, byte_count, offset);
}
