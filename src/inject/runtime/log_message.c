/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes lines to stderr: on the tracer's own threads, at start-up and at exit, never in a
 * callback. Uses raw system calls where the C library's functions are cancellation points. Each
 * line of the debug log is one write(), so that lines of two threads do not mix.
 */
#include "inject/runtime/log_message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "inject/runtime/clock.h"
#include "inject/runtime/signal_guard.h"
#include "log/base/regular_file.h"
#include "log/base/spellcheck.h"

/* The file behind descriptor 2 when the library was loaded. */
static struct {
	bool is_open;
	dev_t device, special;
	ino_t inode;
} at_load;

/* Runs before our other constructors, which may print. */
__attribute__((constructor(101))) static void remember_stderr(void)
{
	int saved_errno = errno;
	struct stat status;

	if (!fstat(STDERR_FILENO, &status)) {
		at_load.device = status.st_dev;
		at_load.special = status.st_rdev;
		at_load.inode = status.st_ino;
		at_load.is_open = true;
	}
	errno = saved_errno;
}

static bool is_as_at_load(mode_t *type_out)
{
	struct stat status;

	if (!at_load.is_open || fstat(STDERR_FILENO, &status))
		return false;
	*type_out = status.st_mode & S_IFMT;
	return status.st_dev == at_load.device && status.st_rdev == at_load.special &&
	       status.st_ino == at_load.inode;
}

/*
 * The driver may load us long after the program started, so descriptor 2 may be another file. A
 * true stderr is not close-on-exec. Shells open files for it write-only. A network socket is never
 * one.
 */
static bool may_be_stderr(mode_t type)
{
	socklen_t domain_bytes = sizeof(int);
	int domain = AF_UNSPEC;

	if (fcntl(STDERR_FILENO, F_GETFD) != 0)
		return false;
	if (type == S_IFREG)
		return (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) != O_RDWR;
	if (type != S_IFSOCK)
		return true;
	return !getsockopt(STDERR_FILENO, SOL_SOCKET, SO_DOMAIN, &domain, &domain_bytes) &&
	       domain == AF_UNIX;
}

/* A pipe with any room takes a whole line. */
static bool takes_a_line(void)
{
	struct pollfd stream = {STDERR_FILENO, POLLOUT, 0};
	const struct timespec at_once = {0, 0};

	return syscall(SYS_ppoll, &stream, 1, &at_once, NULL, 0) == 1 && stream.revents & POLLOUT;
}

/* A closed stderr must not end the program. */
static void write_line(const char *text)
{
	static const char prefix[] = "xtrace: ";
	const struct iovec line[] = {{(void *)(uintptr_t)prefix, sizeof(prefix) - 1},
				     {(void *)(uintptr_t)text, strlen(text)},
				     {(void *)(uintptr_t) "\n", 1}};
	struct signal_guard pipe_guard, size_guard;
	long written;

	signal_hold(&pipe_guard, SIGPIPE);
	signal_hold(&size_guard, SIGXFSZ);
	written = syscall(SYS_writev, STDERR_FILENO, line, sizeof(line) / sizeof(*line));
	signal_release(&size_guard, written < 0 && errno == EFBIG);
	signal_release(&pipe_guard, written < 0 && errno == EPIPE);
}

void log_message_text(const char *text)
{
	int saved_errno = errno;
	mode_t type;

	if (is_as_at_load(&type) && may_be_stderr(type) && takes_a_line())
		write_line(text);
	errno = saved_errno;
}

static struct {
	_Atomic(char *) lines; /* NULL: not collected */
	size_t line_bytes;
	pthread_t thread;
} collector;

void log_message_collect(char *lines, size_t line_bytes)
{
	collector.line_bytes = line_bytes;
	collector.thread = pthread_self();
	atomic_store(&collector.lines, lines);
}

static bool collect(const char *text)
{
	char *lines = atomic_load(&collector.lines);
	size_t length;

	if (!lines || !pthread_equal(collector.thread, pthread_self()))
		return false;
	length = strlen(lines);
	snprintf(lines + length, collector.line_bytes - length, "; %s", text);
	return true;
}

void log_message(const char *format, ...)
{
	int saved_errno = errno;
	char text[1000];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	errno = saved_errno;
	if (!collect(text))
		log_message_text(text);
}

#define LINE_BYTES_MAX 1024

static const char *const domain_names[DEBUG_DOMAINS] = {
	[DEBUG_PROCESS] = "process", [DEBUG_WRITER] = "writer", [DEBUG_CUPTI] = "cupti",
	[DEBUG_STACK] = "stack",     [DEBUG_PYTHON] = "python", [DEBUG_NVTX] = "nvtx",
	[DEBUG_MEMORY] = "memory",
};

static uint32_t enabled_domains;
static uint32_t active_domains; /* enabled_domains once the file is open */
static struct xt_guarded_fd file = {.fd = -1};
static uint64_t start_ns;

static uint32_t domain_bit(const char *name, size_t length)
{
	struct suggestion suggestion = {.name = name, .length = length};

	if (length == strlen("all") && !memcmp(name, "all", length))
		return (UINT32_C(1) << DEBUG_DOMAINS) - 1;
	for (uint32_t d = 0; d < DEBUG_DOMAINS; d++) {
		if (length == strlen(domain_names[d]) && !memcmp(name, domain_names[d], length))
			return UINT32_C(1) << d;
		suggest_consider(&suggestion, domain_names[d]);
	}
	if (suggestion.best)
		log_message("cannot use '%.*s' in XTRACE_DEBUG: unknown domain; did you mean '%s'?",
			    (int)length, name, suggestion.best);
	else
		log_message("cannot use '%.*s' in XTRACE_DEBUG: unknown domain; choose from "
			    "process, writer, cupti, stack, python, nvtx, memory, all",
			    (int)length, name);
	return 0;
}

void debug_log_enable(const char *list)
{
	enabled_domains = 0;
	while (list && *list) {
		size_t length = strcspn(list, ",");

		if (length)
			enabled_domains |= domain_bit(list, length);
		list += length + (list[length] == ',');
	}
}

int debug_log_open(const char *log_path)
{
	char path[PATH_MAX + 32];
	int fd, rc;

	if (!enabled_domains)
		return 0;
	snprintf(path, sizeof(path), "%s.debug", log_path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : xt_guarded_fd_take(&file, fd);
	if (rc) {
		log_message("cannot create '%s': %s", path, strerror(-rc));
		return rc;
	}
	start_ns = monotonic_ns();
	active_domains = enabled_domains;
	return 0;
}

/* Whether lines of the domain are written. */
static bool debug_log_is_on(enum debug_domain domain)
{
	return active_domains >> domain & 1;
}

void debug_log(enum debug_domain domain, const char *format, ...)
{
	int saved_errno = errno, length;
	char line[LINE_BYTES_MAX];
	struct signal_guard guard;
	uint64_t age_us;
	ssize_t written;
	va_list args;

	if (!debug_log_is_on(domain) || !xt_guarded_fd_is_ours(&file))
		return;
	age_us = (monotonic_ns() - start_ns) / 1000;
	length = snprintf(line, sizeof(line), "%llu.%06llu %-8s",
			  (unsigned long long)age_us / 1000000,
			  (unsigned long long)age_us % 1000000, domain_names[domain]);
	va_start(args, format);
	vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, args);
	va_end(args);
	length = (int)strlen(line);
	line[length] = '\n';
	signal_hold(&guard, SIGXFSZ);
	written = write(file.fd, line, (size_t)length + 1);
	signal_release(&guard, written < 0 && errno == EFBIG);
	errno = saved_errno;
}

void debug_log_abandon(void)
{
	active_domains = 0;
	xt_guarded_fd_close(&file);
}
