/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines on stderr. Runs on the tracer's own threads, at entry and at exit; never in a callback.
 */
#include "inject/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "inject/signal_guard.h"

void say(const char *format, ...)
{
	static const char prefix[] = "xtrace: ";
	struct signal_guard pipe_guard, size_guard;
	char line[1024];
	int saved_errno = errno;
	size_t length = sizeof(prefix) - 1;
	ssize_t written;
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
	/* A closed or full stderr is the program's business, and no reason to end it. */
	signal_hold(&pipe_guard, SIGPIPE);
	signal_hold(&size_guard, SIGXFSZ);
	written = write(STDERR_FILENO, line, length);
	signal_release(&size_guard, written < 0 && errno == EFBIG);
	signal_release(&pipe_guard, written < 0 && errno == EPIPE);
	errno = saved_errno;
}
