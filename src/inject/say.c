/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines on stderr. Runs on the tracer's own threads, at entry and at exit; never in a callback.
 */
#include "inject/say.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* A closed or full stderr is the program's business, and no reason to kill it. */
static void write_without_sigpipe(const char *line, size_t length)
{
	const struct timespec at_once = {0, 0};
	sigset_t pipe_signal, pending, before;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	if (write(STDERR_FILENO, line, length) < 0 && errno == EPIPE &&
	    !sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe_signal, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void say(const char *format, ...)
{
	static const char prefix[] = "xtrace: ";
	char line[1024];
	int saved_errno = errno;
	size_t length = sizeof(prefix) - 1;
	va_list args;
	int n;

	__builtin_memcpy(line, prefix, length);
	va_start(args, format);
	n = vsnprintf(line + length, sizeof(line) - length - 1, format, args);
	va_end(args);
	if (n > 0)
		length += (size_t)n < sizeof(line) - length - 1 ? (size_t)n
								: sizeof(line) - length - 2;
	line[length++] = '\n';
	write_without_sigpipe(line, length);
	errno = saved_errno;
}
